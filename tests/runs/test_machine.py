"""What was measured of a machine stands beside the results, by processor, and is not measured again."""

import json
from pathlib import Path

import pytest

from clpapers.runs import machine

FILE = Path("results/mini/machine.json")


@pytest.fixture
def processor(tmp_path, monkeypatch):
    """Says which processor this machine has from now on."""
    monkeypatch.chdir(tmp_path)

    def take(name):
        monkeypatch.setattr(machine, "hardware", lambda: {"processor": name})

    take("one")
    return take


def never():
    raise AssertionError("measured again")


def test_is_measured_once_a_processor(processor):
    assert machine.measured(FILE.parent, "calibration", lambda: 1.5) == 1.5
    assert machine.measured(FILE.parent, "stacking", lambda: 0.9) == 0.9
    processor("other")
    assert machine.measured(FILE.parent, "stacking", lambda: 1.2) == 1.2
    processor("one")
    assert machine.measured(FILE.parent, "calibration", never) == 1.5
    assert machine.measured(FILE.parent, "stacking", never) == 0.9
    assert json.loads(FILE.read_text()) == {"one": {"calibration": 1.5, "stacking": 0.9}, "other": {"stacking": 1.2}}


def test_what_another_process_measured_meanwhile_stays(processor):
    def measure():
        machine.measured(FILE.parent, "calibration", lambda: 1.5)
        return 0.9

    assert machine.measured(FILE.parent, "stacking", measure) == 0.9
    assert machine.measured(FILE.parent, "calibration", never) == 1.5
