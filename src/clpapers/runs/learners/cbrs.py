"""Class-balancing reservoir sampling."""

from clpapers.runs.learner import Setting
from clpapers.runs.learners.er import ER

DECLARATION = {
    "options": {
        "forward": {"enum": ["separate", "joint", "concatenated"], "examples": ["separate", "joint", "concatenated"]},
        "replay": {"enum": ["uniform", "weighted"], "examples": ["uniform", "weighted"]},
    },
    "static": True,
}


class CBRS(ER):
    """CBRS. Chrysakis & Moens 2020: experience replay from a memory kept as class-balanced as possible.

    Parameters
    ----------
    replay: `uniform`, stf's reading, in which CBRS only fills the memory; or `weighted`, the paper's own replay, with
        probability proportional to 1/(items stored of the item's class).
    forward: as for ER.
    """

    policy = "class_balanced"

    def __init__(self, setting: Setting, *, replay: str, forward: str):
        self.weighted = replay == "weighted"
        super().__init__(setting, forward=forward)
