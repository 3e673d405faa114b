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
    found = dict(coverage._runs(SimpleNamespace(metrics=metrics)))
    assert list(found) == [path for path in paths if not path.endswith(".record.json")]
    assert coverage._spent(found) == (3, 1, 1.5, "2026-11-24")


LINE = {"kind": "trained", "verdict": "same", "cause": "", "runs": "a", "metric": "m"}
LINE |= {"graded_against": "1", "against_se": ""}


def lines(*changes):
    return [LINE | change for change in changes]


def test_numbers_are_counted_by_kind_and_once_where_runs_are_shared():
    found = coverage.count(
        lines(
            {},
            {},  # the same runs with the same number
            {"graded_against": "2", "verdict": "differs", "cause": "one run"},
            {"verdict": "near", "against_se": "0.5"},  # the same again, with a spread
            {"runs": "b", "kind": "guess"},
            {"runs": "", "kind": "exact"},
            {"runs": "", "kind": "exact"},  # of no runs: never the same ones
            {"runs": "c", "verdict": "not comparable", "cause": "one run"},
        )
    )
    assert found.compared() == 7
    assert [found.compared(kind) for kind in ("trained", "calibrated", "guess", "exact")] == [4, 0, 1, 2]
    assert found.compared("trained", once=True) == 2
    assert found.grades("trained") == {"same": 0, "near": 1, "open": 0, "differs": 1, "diverges, as printed": 0}
    assert found.weak == {"trained": 1}
    assert coverage.by_kind(found)[-1] == ["all", "7", "1", "5", "3", "1", "0", "1", "0"]
    both = found + found
    assert both.compared() == 14
