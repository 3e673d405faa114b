"""What the coverage counts."""

from pathlib import Path
from types import SimpleNamespace

from clpapers.report import coverage

RUNS = {"runs": ["seed0", "seed1"], "imported": ["seeds2-4"]}


def test_a_run_whose_record_is_measured_too_counts_once(monkeypatch):
    folders = {where: f"results/paper/{where}/mnist/split-5/ewc-0123456789" for where in RUNS}
    paths = [
        f"{folders[where]}/{name}{ending}"
        for where in RUNS
        for name in RUNS[where]
        for ending in (".json", ".record.json")
    ]
    metrics = Path("results/paper/metrics/agem/table7.csv")
    record = {"seeds": [0], "cpu_seconds": 1800, "started": "2026-11-24T10:00:00"}
    inputs = [{"path": path} for path in (*paths, "results/paper/datasets/mnist.npz")]
    monkeypatch.setattr(coverage, "read_record", lambda path: {"inputs": inputs} if path == metrics else record)
    found = dict(coverage._runs(SimpleNamespace(metrics=metrics), []))
    assert list(found) == [path for path in paths if not path.endswith(".record.json")]
    assert coverage._spent(found) == (3, 1, 1.5, "2026-11-24")
