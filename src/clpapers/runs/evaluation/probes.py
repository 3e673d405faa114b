"""Tests on the stream's own items: how much of its past the learner retains."""

import base64

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.evaluation.answers import answered, mark
from clpapers.runs.evaluation.protocol import Evaluator
from clpapers.runs.learner import Learner, Setting


class Probes(Evaluator):
    """Accuracy along the stream on probes, a uniform sample of each seed's stream items.

    At each of `points` equally spaced moments the probes seen so far are classified; their accuracy estimates the
    information retention (Cai et al. 2021), accuracy over all of the stream's past.
    """

    def __init__(self, evaluation: dict, setting: Setting):
        steps, n = len(setting.ends), int(setting.ends[-1])
        last = np.ceil(np.arange(1, evaluation["points"] + 1) * steps / evaluation["points"]).astype(int) - 1
        super().__init__({int(t): int(setting.ends[t]) for t in last})  # step → items seen after it
        self.setting, count = setting, min(evaluation["probes"] or n, n)
        drawn = [generator(seed, "probes").permutation(n)[:count] for seed in setting.seeds]
        self.positions = np.sort(np.stack(drawn), axis=1)

    def test(self, t: int, learner: Learner) -> np.ndarray:
        """Whether each probe seen up to step t is right: bool [S, most probes seen by any seed]."""
        seen = self.positions < self.steps[t]
        setting, most = self.setting, int(seen.sum(axis=1).max())
        if not most:  # few probes, and none of the first items among them
            return np.zeros((len(setting.seeds), 0), bool)
        positions = torch.from_numpy(self.positions[:, :most]).to(setting.items.device)
        items, labels, tasks = (each.gather(1, positions) for each in (setting.items, setting.labels, setting.tasks))
        answers = answered(learner, setting.images, items, tasks, {"none": None})["none"]
        return mark(answers, labels.cpu().numpy(), self.unanswered, seen[:, :most])

    def result(self, s: int) -> dict:
        """In `probes`: positions in the stream, times (items seen), and base64 of packed bits, 1 for right."""
        packed = []
        for time, right in zip(self.steps.values(), self.taken):
            seen = right[s, : int((self.positions[s] < time).sum())]
            packed.append(base64.b64encode(np.packbits(seen).tobytes()).decode())
        times = list(self.steps.values())
        return {"probes": {"position": self.positions[s].tolist(), "time": times, "correct": packed}}
