"""A method is one file: with its line in a paper's file, an ER-like one gets a row and is held to every contract."""

import csv
import re
import shutil

from project import ROOT

METHOD = '''\
"""Experience replay whose replayed items weigh less or more than the stream's."""

from __future__ import annotations

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {"options": {"weight": {"type": "number", "minimum": 0, "examples": [0.5, 2.0]}}}


class WeightedReplay(Replay):
    """ER with a weight.

    Parameters
    ----------
    weight: that of the replay batch's mean loss; the stream batch's has 1.
    """

    def __init__(self, setting: Setting, *, weight: float):
        super().__init__(setting)
        self.weight, self.replay = weight, Draws(self.memory, setting.budget["replay_batch"])

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = stream_loss = cross_entropy(logits, y)
        replay = self.replay(t)
        if replay is not None:
            loss = stream_loss + self.weight * cross_entropy(self.net(replay.x), replay.y, replay.weight)
        self.step(loss)
        self.memory.write(t)
        return Observed(stream_loss, logits)
'''
CONTRACTS = {
    "test_a_learner_takes_what_it_declares",
    "test_what_a_learner_declares_is_there",
    "test_a_step_says_of_itself_what_the_learner_declares",
    "test_a_seed_does_not_depend_on_its_stack_mates",
    "test_twice_the_same_bytes",
    "test_every_learners_result_is_ready_for_json",
    "test_interrupted_after_each_step_task_changes_among_them",
}


def test_a_method_is_one_file_and_a_line_in_a_papers_file(project):
    project.write("src/clpapers/runs/learners/weighted_replay.py", METHOD)
    project.edit(
        "config/papers/mini.yaml",
        "  ace: {forward: separate}\n",
        "  ace: {forward: separate}\n  weighted_replay: {weight: 0.5}\n",
    )
    project.edit("config/papers/mini.yaml", "learner: [er, ace]", "learner: [er, ace, weighted_replay]")
    built = project.snakemake("results/mini/targets/mini/table1.csv", "--cores", "2")
    assert built.returncode == 0, built.stdout
    with (project.folder / "results/mini/metrics/mini/table1.csv").open(encoding="utf-8") as file:
        found = {line["learner"] for line in csv.DictReader(file)}
    assert found == {"er", "ace", "weighted_replay"}
    assert "weighted_replay" in (project.folder / "results/mini/targets/mini/table1.csv").read_text(encoding="utf-8")

    shutil.copytree(ROOT / "tests", project.folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    tests = [f"tests/runs/test_{name}.py" for name in ("learners", "loop", "checkpoint")]
    ran = project._run("pytest", *tests, "-k", "weighted_replay", "-rp", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout
    assert set(re.findall(r"^PASSED \S+::(\w+)\[", ran.stdout, re.MULTILINE)) >= CONTRACTS
