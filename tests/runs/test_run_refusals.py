"""Methods, nets and files of results that are refused, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import refusals
import torch
from test_contract_check import OBSERVE, PLAIN, REPLAY, with_state
from test_contracts import scores
from test_gans import MEMBERS, images, options
from test_heads import EMBEDDING
from test_images import CPU, PIXELS
from tiny import CNN
from torch import nn
from world.published import entry_of, result_of

from clpapers.runs import contract_check, nets
from clpapers.runs.contracts import Undeclared, checked_scores, checked_step
from clpapers.runs.fisher import squared_gradients
from clpapers.runs.gans import GANs
from clpapers.runs.images import Images
from clpapers.runs.nets import progressive
from clpapers.runs.nets.stacked import stack
from clpapers.runs.result_schema import results

COSINE = {"name": "resnet18_reduced", "width": 1, "head": "cosine"}
SEEN = "        if t == 0:\n            SEEN.clear()\n        SEEN.append(t)\n        self.step(loss / len(SEEN))"
DRAWS = (
    "        if t == 0:\n            torch.manual_seed(self.setting.seeds[0])\n"
    "        self.step(loss * torch.rand(1, dtype=loss.dtype))"
)
LISTENS = """\
(loss / len(getattr(self, 'heard', 'a'))).backward()
        self.optimizer.step()
        return logits

    def predict(self, x):
        self.heard = getattr(self, 'heard', 'a') + 'a'
        return self.net(x)
"""


@pytest.fixture
def mine(tmp_path):
    """Let `mine.py` be the method of a text; `beside.txt` lies beside it."""
    sys.modules.pop("clpapers.runs.learners.mine", None)
    (tmp_path / "beside.txt").write_text("1.0")

    def of(text):
        (tmp_path / "mine.py").write_text(text)

    return of


def tried():
    """All that a method must keep, tried."""
    return list(contract_check.contracts(Path("mine.py").absolute()))


test_refused, test_unedited = refusals.tests("runs", globals())
