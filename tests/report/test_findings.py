"""Numbers that differ stand below the first mark of a page of findings that names them."""

import fnmatch
from pathlib import Path

import pandas as pd
import pytest
import yaml

from clpapers.report.findings import MARK, causes, fill, slug

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("findings.md").read_text(encoding="utf-8")


def numbers(*lines):
    """Numbers by place, row, column, verdict and the runs that they rest on."""
    texts = {"difference": "+1.0 [0.5, 1.5]", "runs": "3"}
    keys = ["place", "row", "column", "verdict", "runs"]
    compared = pd.DataFrame([dict(zip(keys, line)) for line in lines], columns=keys)
    fixed = {"named": "A", "metric": "a", "graded_against": 1.0, "against_se": 0.1, "difference": 1.0, "dataset": "d"}
    return compared.assign(**fixed, texts=[texts] * len(lines))


SOME = numbers(
    ("table1", "EWC", "MNIST", "differs", "r1"),
    ("table1", "EWC", "CIFAR", "differs", "r2"),
    ("table1", "SI", "MNIST", "differs", "r3"),
    ("table2", "SI", "MNIST", "differs", "r3"),
    ("table2", "EWC", "MNIST", "open", "r4"),
)


def filled(page=PAGE, compared=SOME, claims=None):
    return fill(page, found(page, compared, claims), claims or {})


def found(page=PAGE, compared=SOME, claims=None):
    return causes(Path("page.md"), page, compared, list(claims or {}))


def test_a_cause_is_its_section_with_its_status_and_address():
    first, rest = found(claims={"higher": "It says so."})
    assert (first.title, first.status, first.anchor, first.once) == ("EWC is above", "in part", "ewc-is-above", 2)
    assert (first.claims, first.rest, rest.rest, rest.once) == (["higher"], False, True, 1)


def test_addresses_are_those_of_code_hosts():
    assert slug("GR at Sp=2: a `shared` encoder's 65 %") == "gr-at-sp2-a-shared-encoders-65-"


def test_a_number_stands_below_the_mark_that_names_it_and_others_below_the_empty_one():
    named, rest = filled().split("## The rest")
    assert "| `table1` | EWC | MNIST, CIFAR | A | +1.0 [0.5, 1.5] | 3 |" in named
    assert "old" not in named
    assert "SI" not in named
    assert "table2" not in named
    assert "| `table1` | SI | MNIST |" in rest
    assert "| `table2` | SI | MNIST |" in rest
    assert "EWC" not in rest
    assert rest.endswith("\nThe end.\n")


def test_a_comparison_that_targets_share_counts_once():
    assert "3 numbers differ; one that several tables repeat counts once." in filled()
    assert "1 have no experiment on this page." in filled()


def test_a_claim_that_does_not_hold_stands_below_its_mark_or_with_the_rest():
    named, rest = filled(claims={"higher": "“EWC is higher”.", "lower": "“SI is lower”."}).split("## The rest")
    assert "- “EWC is higher”." in named
    assert "- “SI is lower”." in rest


def test_filled_again_a_page_is_the_same():
    assert filled(filled()) == filled()


def test_marks_whose_numbers_no_longer_differ_say_so():
    text = filled(compared=SOME[SOME["verdict"] == "open"])
    assert text.count("Nothing here differs now.") == 1
    assert "No number that was compared differs." in text
    assert "No number that was compared differs." in filled(compared=numbers())


@pytest.mark.parametrize("page", sorted((ROOT / "docs/findings").glob("*.md")), ids=lambda page: page.stem)
def test_each_place_of_a_page_is_a_number_that_is_compared_or_a_claim_of_its_paper(page):
    files = (ROOT / "results/published/metrics" / page.stem).glob("*.reported.csv")
    tables = {file.name.removesuffix(".reported.csv"): pd.read_csv(file, dtype=str) for file in files}
    marks = MARK.finditer(page.read_text(encoding="utf-8"))
    places = [place.split(" | ") for mark in marks for place in mark["places"].splitlines()]
    for target, *parts in (place for place in places if place[0] != "claim"):
        found = [
            all(map(fnmatch.fnmatchcase, line, parts[:2]))
            for name, table in tables.items()
            if fnmatch.fnmatchcase(name, target)
            for line in table[["row", "column"]].fillna("").itertuples(index=False)
        ]
        assert any(found), (target, *parts)
    claims = yaml.safe_load((ROOT / "config/claims.yaml").read_text(encoding="utf-8"))[page.stem]
    assert {place[1] for place in places if place[0] == "claim"} <= claims.keys()
