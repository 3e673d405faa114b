"""A graph on the CPU: records a program's operations and replays them at the same addresses, as CUDA's graphs do."""

import weakref
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

ATEN = torch.ops.aten
# Operations whose outcome the host waits for, or whose shape depends on values, or that take memory from the host's.
LOOKS = "_local_scalar_dense equal is_nonzero masked_select nonzero bincount repeat_interleave _unique2 _unique"
LOOKS += " unique_dim unique_consecutive histc lift_fresh lift_fresh_copy"
LOOKS = {getattr(ATEN, name) for name in LOOKS.split()}
BY_INDEX = {ATEN.index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_}
TO_HOST = ("cpu", "numpy", "tolist", "item", "__bool__", "__int__", "__float__", "__array__")


class Looks(AssertionError):
    """A program looks at values."""


def looks(*_):
    raise Looks


def storage(tensor):
    return tensor.untyped_storage()._cdata


def tensors(tree):
    return [each for each in tree_flatten(tree)[0] if isinstance(each, torch.Tensor)]


class Tape(TorchDispatchMode):
    """Operations on tensors, with the tensors.

    As with a CUDA graph, the capture changes nothing that was there before, what the program made has no values before
    the first replay, and each replay finds none of what the one before made within. Looks at values are refused.
    """

    def __init__(self):
        super().__init__()
        self.calls, self.before, self.made, self.replays = [], {}, {}, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        packet = func.overloadpacket
        by_truth = packet in BY_INDEX and any(
            each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1]
        )
        if packet in LOOKS or by_truth:
            raise Looks(str(func))
        given = tree_map_only(torch.Tensor, torch.Tensor.detach, (args, kwargs or {}))
        for each in tensors(given):
            if storage(each) not in self.made:
                self.before.setdefault(storage(each), (each, each.untyped_storage().clone()))
        out = func(*args, **(kwargs or {}))
        kept = [each.detach() for each in tensors(out)]
        self.made |= {storage(each): each for each in kept if storage(each) not in self.before}
        self.calls.append((func, given, kept))
        return out

    def capture(self, program):
        with self, mock.patch.multiple(torch.Tensor, **dict.fromkeys(TO_HOST, looks)):
            found = program()
        self.restore()
        self.lose()
        return found

    def restore(self):
        """Let all that was there before have the values that it had."""
        for tensor, content in self.before.values():
            tensor.untyped_storage().copy_(content)

    def lose(self):
        """Lose the values of all that the program made."""
        for tensor in self.made.values():
            tensor.untyped_storage().fill_(255)  # NaN, or -1

    def replay(self):
        self.lose()
        self.replays.append(len(self.calls))
        for func, (args, kwargs), kept in self.calls:
            for old, new in zip(kept, tensors(func(*args, **kwargs)), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Pool:
    """Makes tapes. As with CUDA's graphs, nothing can be captured in a pool whose graphs are all gone.

    replays: of each tape, the operations of each replay.
    """

    def __init__(self):
        self.alive, self.replays = weakref.WeakSet(), []

    def __call__(self):
        if self.replays and not self.alive:
            raise RuntimeError("the pool ended with its last graph")
        tape = Tape()
        self.alive.add(tape)
        self.replays.append(tape.replays)
        return tape
