"""A graph on the CPU: records a program's operations and replays them at the same addresses, as CUDA's graphs do."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

ATEN = torch.ops.aten
# Operations whose outcome the host waits for, or whose shape depends on values.
LOOKS = {
    ATEN._local_scalar_dense,
    ATEN.equal,
    ATEN.is_nonzero,
    ATEN.masked_select,
    ATEN.nonzero,
    ATEN.bincount,
    ATEN.repeat_interleave,
    ATEN._unique2,
    ATEN._unique,
    ATEN.unique_dim,
    ATEN.unique_consecutive,
    ATEN.histc,
}


class Looks(AssertionError):
    """A program looks at values."""


def refuse(func, args):
    """Raise `Looks` for an operation that makes a GPU's host wait, or that makes memory from the host's."""
    packet = func.overloadpacket
    by_truth = packet in (ATEN.index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_) and any(
        each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1]
    )
    if packet in LOOKS or by_truth or packet in (ATEN.lift_fresh, ATEN.lift_fresh_copy):
        raise Looks(str(func))


def storage(tensor):
    return tensor.untyped_storage()._cdata


class Tape(TorchDispatchMode):
    """Operations on tensors, with the tensors.

    As with a CUDA graph, the capture changes nothing that was there before, what the program made has no values before
    the first replay, and each replay finds none of what the one before made within.
    """

    def __init__(self):
        super().__init__()
        self.calls, self.before, self.made, self.replays = [], {}, {}, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        refuse(func, args)
        given = tree_map_only(torch.Tensor, torch.Tensor.detach, (args, kwargs or {}))
        for each in tree_flatten(given)[0]:
            if isinstance(each, torch.Tensor) and storage(each) not in self.made:
                self.before.setdefault(storage(each), (each, each.untyped_storage().clone()))
        out = func(*args, **(kwargs or {}))
        kept = [each.detach() for each in tree_flatten(out)[0] if isinstance(each, torch.Tensor)]
        for each in kept:
            if storage(each) not in self.before:
                self.made[storage(each)] = each
        self.calls.append((func, given, kept))
        return out

    def capture(self, program):
        with self:
            found = program()
        for tensor, content in self.before.values():
            tensor.untyped_storage().copy_(content)
        self.lose()
        return found

    def lose(self):
        """Lose the values of all that the program made."""
        for tensor in self.made.values():
            tensor.untyped_storage().fill_(255)  # NaN, or -1

    def replay(self):
        self.lose()
        self.replays.append(len(self.calls))
        for func, (args, kwargs), kept in self.calls:
            found = [each for each in tree_flatten(func(*args, **kwargs))[0] if isinstance(each, torch.Tensor)]
            for old, new in zip(kept, found, strict=True):
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
