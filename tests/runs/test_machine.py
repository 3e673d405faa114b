"""Measurements of a machine stand beside the results, by processor, and are not taken again."""

import json

from clpapers.provenance import hardware
from clpapers.runs.machine import measured

PROCESSOR = hardware()["processor"]


def never():
    raise AssertionError("measured again")


def test_is_measured_once_a_processor(tmp_path):
    """Another process may measure meanwhile; its value stays, as that of another processor does."""
    file = tmp_path / "mini/machine.json"
    file.parent.mkdir()
    file.write_text('{"other": {"stacking": 1.2}}')

    def meanwhile():
        assert measured(file.parent, "calibration", lambda: 1.5) == 1.5
        return 0.9

    assert measured(file.parent, "stacking", meanwhile) == 0.9
    assert [measured(file.parent, name, never) for name in ("calibration", "stacking")] == [1.5, 0.9]
    found = json.loads(file.read_text())
    assert found == {"other": {"stacking": 1.2}, PROCESSOR: {"calibration": 1.5, "stacking": 0.9}}
