"""The tables of claims: every claim quoted, tested in words and shown with its effect; all of them counted."""

import dataclasses
from pathlib import Path

import by_hand
import numpy as np
import pandas as pd
import pytest
from rendering import crossed

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.evidence import claims_table
from clpapers.evidence.claim import Claim, Part, Side
from clpapers.evidence.verdicts import decide
from clpapers.graph.jobs import claimed_targets, claims_of
from clpapers.metrics.class_frequency import chunk_times
from clpapers.metrics.factors import flat
from clpapers.targets import formats
from clpapers.targets.footnotes import Notes

SPECS = {
    "stf/table1": {
        "metrics": ["final_accuracy"],
        "names": {"er": "ER", "ace": "ACE", "cifar10": "CIFAR-10", "final_accuracy": "Fin. Acc."},
    },
    "stf/table3": {"metrics": ["forgetting"], "names": {"er": "ER", "forgetting": "F"}},
}
FRAME = crossed(dataset=["cifar10", "emnist"], learner=["er", "ace"], seed=range(3)).assign(metric="final_accuracy")
GAIN, SEEN = 9.5 * (FRAME["learner"] == "ace"), FRAME["dataset"] == "emnist"
FRAME["value"] = 40 + GAIN + FRAME["seed"] * (1 + SEEN) + (FRAME["seed"] - 1) * GAIN / 950
COLUMNS = [
    "claim", "section", "statement", "test", "note", "choice", "target", "effect", "ci_low", "ci_high",
    "confidence", "unit", "parts", "result", "verdict", "calibrated", "reason",
]  # fmt: skip


def side(dataset, learner):
    levels = {"dataset": dataset, "learner": learner}
    return Side("stf/table1", "final_accuracy", "mean", levels, True, dataset, (dataset, "stf"))


def claim(name, datasets, spec):
    parts = tuple(Part((side(d, "ace"), side(d, "er"))) for d in datasets)
    given = {"section": "4.3", "statement": "ACE is 100 % better | or so", "target": "table1"}
    where = {"where": {"dataset": datasets}, "of": {"learner": "ace"}, "than": {"learner": "er"}}
    return Claim("stf", name, given | {"metric": "final_accuracy"} | where | spec, parts)


def words(name="Fin. Acc.", **spec):
    specs = {key: each | {"names": each.get("names", {}) | {"final_accuracy": name}} for key, each in SPECS.items()}
    return claims_table.test_in_words(claim("ours", ["cifar10"], spec), specs)


def chosen(statement, **spec):
    return claims_table.choices(claim("ours", ["cifar10"], {"statement": statement, **spec}))


def against(number, **spec):
    """The result of a claim that holds ACE's accuracy against a number."""
    parts = (Part((side("cifar10", "ace"),), float(number)),)
    made = dataclasses.replace(claim("ours", ["cifar10"], {"than": number, **spec}), parts=parts)
    found = decide(made, {"stf/table1": FRAME}, {"stf/table1": Notes("paper", seeds=3)})
    return claims_table.result(made, found.shown, SPECS)


test_by_hand = by_hand.tests(globals())
CLAIMS = [
    claim("better", ["cifar10", "emnist"], {"test": "above"}),
    claim("twice", ["cifar10"], {"test": "above", "ratio": True, "by": 2, "note": "Printed: 1.2 times."}),
    claim("fake", ["emnist"], {"test": "within", "margin": 5}),
]


@pytest.fixture
def table():
    said = {"stf/table1": Notes("small", {"emnist": "synthetic"}, seeds=3)}
    verdicts = [decide(each, {"stf/table1": FRAME}, said) for each in CLAIMS]
    return claims_table.render("Streams", CLAIMS, verdicts, SPECS, said)


def test_one_line_a_claim(table):
    assert list(table.data.columns) == COLUMNS
    assert list(table.data["claim"]) == ["better", "twice", "fake"]
    assert list(table.data["verdict"]) == ["not comparable", "does not hold", "not comparable"]
    better, twice, fake = table.data.to_dict("records")
    assert better["test"] == "Fin. Acc. of ACE above ER (CIFAR-10, emnist)"
    assert better["reason"] == "2 parts: 1 holds, 1 not comparable; stand-in data: emnist"
    assert (better["parts"], twice["parts"]) == (2, 1)
    assert (better["effect"], better["ci_low"]) == pytest.approx((9.5, 9.475), abs=1e-3)
    assert better["unit"] == "points"
    assert (twice["unit"], twice["test"]) == ("×", "Fin. Acc. of ACE more than 2 times ER (CIFAR-10)")
    assert twice["effect"] == pytest.approx(np.prod([(49.49 + 1.01 * s) / (40 + s) for s in range(3)]) ** (1 / 3))
    assert fake["test"] == "Fin. Acc. of ACE within 5 of ER (emnist)"


def test_the_page_shows_interval_parts_and_circumstances(table):
    assert list(table.body["Result"]) == [
        "Fin. Acc. of ACE less ER (emnist): +9.5 [9.48, 9.52] points; claimed: above 0",
        "Fin. Acc. of ACE over ER (CIFAR-10): 1.23 [1.22, 1.25] ×, not above 2",
        "Fin. Acc. of ACE less ER (emnist): +9.5 [9.48, 9.52] points; claimed: within ±5",
    ]
    assert list(table.bold["Verdict"]) == [False, True, False]
    (parts,) = table.appended
    assert parts.body[["Claim", "Part", "Verdict"]].to_numpy().tolist() == [
        ["better", "CIFAR-10: ACE vs ER", "holds"],
        ["better", "emnist: ACE vs ER", "not comparable"],
    ]
    assert table.title == "Claims of “Streams”†"
    assert table.footnotes == ["† Stand-in data, not the paper's: emnist: synthetic."]


def test_a_claims_note_stands_beside_its_test_in_every_format(table, tmp_path):
    assert list(table.data["note"]) == ["", "Printed: 1.2 times.", ""]
    files = formats.write_table(table, tmp_path / "claims")
    for file in files[1:]:
        assert file.read_text().count("(CIFAR-10). CHOICE: by 2. Printed: 1.2 times") == 1, file


def test_a_claim_that_was_tuned_on_says_so():
    tuned = claim("tuned", ["cifar10"], {"test": "above", "calibrated": "initial variance"})
    said = {"stf/table1": Notes("paper", seeds=3)}
    table = claims_table.render("Streams", [tuned], [decide(tuned, {"stf/table1": FRAME}, said)], SPECS, said)
    assert list(table.data["calibrated"]) == ["initial variance"]
    assert list(table.body["Verdict"]) == ["holds, calibrated"]


def test_at_a_reduced_scale_no_claim_is_decided_and_a_mark_says_so():
    said = {"stf/table1": Notes("small", {}, ["order.length 9 (paper: all)"], 3)}
    verdicts = [decide(each, {"stf/table1": FRAME}, said) for each in CLAIMS]
    table = claims_table.render("Streams", CLAIMS, verdicts, SPECS, said)
    assert set(table.data["verdict"]) == {"not comparable"}
    assert table.data["reason"].iloc[1] == "reduced scale"
    assert table.data["effect"].notna().all()
    assert table.title == "Claims of “Streams”‡"
    assert table.footnotes == ["‡ Reduced scale ‘small’ in stf/table1; how, their own footnotes say."]


def test_every_format_is_written_and_breaks_lines(table, tmp_path):
    formats.write_table(table, tmp_path / "claims")
    assert list(pd.read_csv(tmp_path / "claims.csv").columns) == COLUMNS
    assert r"ACE is 100 % better \| or so" in (tmp_path / "claims.md").read_text()
    tex = (tmp_path / "claims.tex").read_text()
    assert tex.count(r"\begin{longtable}{p{0.12\linewidth}p{0.24\linewidth}") == 1
    assert r"100 \% better" in tex
    assert tex.count("{") == tex.count("}")
    assert (tmp_path / "claims.html").read_text().count('<div class="prose">') == 2


def test_the_scorecard_counts():
    claims = {
        "stf": pd.DataFrame({"statement": ["a", "a", "b"], "verdict": ["holds", "holds", "does not hold"]}),
        "agem": pd.DataFrame({"statement": ["c", "d"], "verdict": ["not comparable", "by construction"]}),
    }
    made = claims_table.scorecard(claims, {"stf": "Streams", "agem": "Lifelong"}, "small")
    assert made.data.to_dict("list") == {
        "paper": ["stf", "agem"],
        "claims": [3, 2],
        "holds": [2, 0],
        "does not hold": [1, 0],
        "undecided": [0, 0],
        "by construction": [0, 1],
        "not comparable": [0, 1],
        "sentences": [2, 2],
        "sentences holds": [1, 0],
        "sentences by construction": [0, 1],
        "sentences holds where tested": [0, 0],
        "sentences holds in part": [0, 0],
        "sentences does not hold": [1, 0],
        "sentences undecided": [0, 0],
        "sentences not tested": [0, 1],
    }
    assert made.body.iloc[-1].tolist() == ["all", *"52101141100101"]
    assert made.body.iloc[0, 0] == "stf: Streams"


def invented(target):
    """Two seeds of positive noise for each of a target's cells and metrics, at ten times, or its own stretches of a
    stream, and, if asked, five tasks."""
    rng = np.random.default_rng(0)
    if "simulations" in target.spec:
        return pd.DataFrame({"row": "simulation", "metric": target.spec["metrics"], "mean": 99.8, "se": 0.1, "n": 9})
    cells = [flat(factors) for factors, _ in target.cells]
    cells = cells or [{"dataset": dataset, "order": order["name"]} for dataset, order, _ in target.streams]
    stretches = chunk_times(target.spec.get("points", 0))
    metrics = [*target.spec.get("metrics", ()), target.spec.get("statistic"), "threshold_below", "threshold_from"]
    return pd.DataFrame(
        [
            {**cell, "seed": seed, "metric": metric, "time": time, "task": task, "value": 1 + rng.random()}
            for cell in cells
            for metric in filter(None, metrics)
            for seed in (0, 1)
            for time in (stretches if metric == "stream_loss" else range(1, 11))
            for task in (range(1, 6) if metric == "mutual_information_by_task" else (np.nan,))
        ]
    )


def test_every_claim_of_the_papers_can_be_decided_and_shown(monkeypatch, tmp_path):
    """Whatever was measured: no claim of config/claims.yaml asks for what metrics do not hold."""
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    plan = Plan("paper", all_papers())
    for paper, claims in claims_of(plan).items():
        used = {f"{paper}/{target.name}": target for target in claimed_targets(plan, claims)}
        frames = {name: invented(target) for name, target in used.items()}
        said = {name: Notes("paper", seeds=2) for name in used}
        verdicts = [decide(claim, frames, said) for claim in claims]
        assert all(verdict.parts for verdict in verdicts)
        assert {part.reason for verdict in verdicts for part in verdict.parts if np.isnan(part.effect)} == set(), paper
        specs = {name: target.spec for name, target in used.items()}
        table = claims_table.render(paper, claims, verdicts, specs, said)
        formats.write_table(table, tmp_path / paper)
        assert list(table.data["claim"]) == [claim.name for claim in claims]
        assert not table.body["Test"].str.contains(r"\{|\$|\bnan\b|\bNone\b").any()
