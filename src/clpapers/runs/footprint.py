"""A learner's footprint: the bytes that it holds between steps."""

import types
from collections.abc import Sequence

import torch

from clpapers.runs.images import Images
from clpapers.runs.learner import Learner, Setting
from clpapers.runs.memories import Draws, Memory
from clpapers.runs.memories.episodic import EpisodicMemory

# `Learner.memory_use` counts a memory. Plans and draws for the whole stream are this implementation's, not a method's.
ELSEWHERE = (Setting, Images, Memory, Draws, EpisodicMemory, type, types.ModuleType)


def learner_bytes(learner: Learner, s: int) -> dict[str, int]:
    """Bytes that the stack's seed number s holds for `training`, and bytes that `testing` still needs.

    Counted are all floating-point tensors, once per storage: parameters and buffers, gradients, importances,
    references, copies of nets. Training adds the images of the memory as it keeps them; for indices, a byte a colour
    value or four a feature. Not counted: data set and stream, integers (indices into them, counts), numbers that all
    seeds share, tensors within a step, and all that the learner names in `uncounted`.
    """
    seeds = len(learner.setting.seeds)
    memory = learner.memory_use(s)["bytes"]
    return {
        "training": _bytes(vars(learner), gradients=True, without=learner.uncounted()) // seeds + memory,
        "testing": _bytes(learner.needed_to_answer(), gradients=False) // seeds,
    }


def _bytes(root: object, *, gradients: bool, without: Sequence[object] = ()) -> int:
    """Bytes of the storages of all floating-point tensors that can be reached from an object."""
    storages, met, queue = {}, {id(each): each for each in without}, [root]
    while queue:
        each = queue.pop()
        if id(each) in met or isinstance(each, ELSEWHERE):
            continue
        met[id(each)] = each  # kept alive, so that no other object gets its id
        if isinstance(each, torch.Tensor):
            if each.is_floating_point() and each.dim():
                storage = each.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
            if gradients and each.is_leaf:
                queue.append(each.grad)
        elif isinstance(each, dict):
            queue += each.values()
        elif isinstance(each, list | tuple | set):
            queue += each
        elif hasattr(each, "__dict__"):
            queue += vars(each).values()
    return sum(storages.values())
