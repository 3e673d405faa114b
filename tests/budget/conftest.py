"""Nothing is built where these tests run but the files of runs that have finished."""

import json
from pathlib import Path

import pytest

from clpapers.budget import card_costs
from clpapers.provenance import record_path


@pytest.fixture(autouse=True)
def nothing_built(unbuilt):
    """Whatever was trained or imported where the tests run."""


@pytest.fixture
def ran():
    """Writes the files of a run that finished; its record has what is given."""

    def written(path, device="cpu", hardware=(), **facts):
        record = dict.fromkeys(("stage", "command", "code", "started"), "") | {"git": {}, "data": {}}
        record |= dict.fromkeys(("wall_seconds", "cpu_seconds", "peak_memory_bytes"), 0)
        record |= {"inputs": [], "outputs": [], "hardware": {"device": device, **dict(hardware)}} | facts
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        record_path(path).write_text(json.dumps(record))
        return Path(path)

    return written


@pytest.fixture
def card_rows():
    """Writes the published table of what runs take on cards, with the given rows."""

    def put(*rows):
        card_costs.FILE.parent.mkdir(parents=True, exist_ok=True)
        card_costs.FILE.write_text(card_costs.text(rows))
        card_costs.read.cache_clear()

    yield put
    card_costs.read.cache_clear()
