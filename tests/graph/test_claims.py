"""The grammar of claims: what is wrong is refused in one telling line; what is right becomes parts."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from clpapers.catalogue.metrics import margins_of
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph.jobs import claims_of

ROOT = Path(__file__).parents[2]
WRITTEN = yaml.safe_load((ROOT / "config/claims.yaml").read_text(encoding="utf-8"))
CLAIM = """\
stf:
  ours:
    section: "4.3"
    statement: "ACE outperforms"
    target: table1
    metric: final_accuracy
    test: above
    where: {dataset: [cifar10, cifar100]}
    of: {learner: ace}
    than: {learner: others}
"""


@pytest.fixture
def of_file(tmp_path, monkeypatch):
    """The claims of `stf` that a file of this text gives, at a scale."""
    for folder in ("config", "workflow"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)

    def read(text, scale="paper"):
        Path("config/claims.yaml").write_text(text, encoding="utf-8")
        return claims_of(Plan(scale, ["stf"]))["stf"]

    return read


@pytest.fixture(scope="module")
def resolved():
    """All papers' claims at each scale."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {scale: claims_of(Plan(scale, all_papers())) for scale in ("smoke", "paper")}


def test_every_claim_has_parts_at_the_papers_own_scale_and_all_of_them_run(resolved):
    for claim in (claim for of_paper in resolved["paper"].values() for claim in of_paper):
        assert claim.parts, claim.name
        assert all(side.runs for part in claim.parts for side in part.sides), claim.name


def test_every_paper_claims_and_other_scales_have_the_same_claims(resolved):
    names = {s: {(p, c.name) for p, of_paper in there.items() for c in of_paper} for s, there in resolved.items()}
    assert set(resolved["paper"]) == {"agem", "desiderata", "rules", "stf", "streaming"}
    assert len(names["paper"]) >= 60
    assert names["smoke"] == names["paper"]


def test_no_two_claims_are_the_same_test():
    for paper, written in WRITTEN.items():
        tests = [
            repr({k: v for k, v in c.items() if k not in ("statement", "section", "note")}) for c in written.values()
        ]
        assert len(tests) == len(set(tests)), paper


def test_a_part_for_each_level_and_each_other_method(of_file):
    (claim,) = of_file(CLAIM)
    assert len(claim.parts) == 2 * 5
    first, second = claim.parts[0].sides
    assert first.levels == {"dataset": "cifar10", "learner": "ace"}
    assert second.levels == {"dataset": "cifar10", "learner": "er"}
    assert {part.sides[1].levels["learner"] for part in claim.parts} == {"er", "mir", "cbrs", "gdumb", "gmed"}
    assert claim.targets == ["stf/table1"]


def test_the_same_streams_pair_and_others_do_not(of_file):
    (claim,) = of_file(CLAIM)
    assert all(part.paired for part in claim.parts)
    swapped = CLAIM.replace("{dataset: [cifar10, cifar100]}", "{learner: er}")
    swapped = swapped.replace("of: {learner: ace}", "of: {dataset: emnist}").replace("than: {learner", "than: {dataset")
    (claim,) = of_file(swapped)
    assert len(claim.parts) == 3
    assert not any(part.paired for part in claim.parts)


def test_words_stand_for_the_scales_own_levels(of_file):
    text = CLAIM.replace("table1", "figure3").replace("learner: others", "learner: er")
    (claim,) = of_file(text.replace("[cifar10, cifar100]}", "emnist, order.mu_sigma_factor: last}"))
    assert [part.sides[0].levels["order.mu_sigma_factor"] for part in claim.parts] == [4]
    trend = text.replace("above", "increasing\n    along: order.mu_sigma_factor").replace(
        "    than: {learner: er}\n", ""
    )
    (claim,) = of_file(trend)
    assert [len(part.sides) for part in claim.parts] == [4, 4]
    assert [side.levels["order.mu_sigma_factor"] for side in claim.parts[0].sides] == [0.5, 1, 2, 4]


def test_a_choice_was_read_off_a_number_of_its_row_and_its_column(of_file):
    """Table 1 names a choice of ER on CIFAR-10 and one of GDUMB on CIFAR-100."""
    (claim,) = of_file(CLAIM)
    sides = [side for part in claim.parts for side in part.sides if side.calibrated]
    assert [tuple(side.levels.values()) for side in sides] == [("cifar10", "er"), ("cifar100", "gdumb")]


def test_what_only_this_scale_leaves_out_does_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    there = {claim.name: claim for claim in claims_of(Plan("smoke", all_papers()))["rules"]}
    runs = {part.sides[0].levels["oracle"]: part.sides[0].runs for part in there["offline_mm_best"].parts}
    assert runs["sp2"] is True
    assert runs["sp5"] is False


def test_what_is_subtracted_is_a_side_of_its_own(of_file):
    text = CLAIM.replace("learner: others", "learner: mir").replace(
        "    of:", "    less: {ace: er, mir: gmed}\n    of:"
    )
    (claim,) = of_file(text)
    first, second = claim.parts[0].sides
    assert [side.less.levels for side in (first, second)] == [
        first.levels | {"learner": "er"},
        second.levels | {"learner": "gmed"},
    ]
    assert first.less.less is None


def test_a_bound_is_no_wider_than_its_sentences_words(resolved):
    """A number of times within √2, orders of magnitude within √10; a stated number within its metric's first margin, or
    the second if it is about, around or similar, or within half of its digit if the metric has no margin."""
    bounded = [claim for of_paper in resolved["paper"].values() for claim in of_paper if claim.spec["test"] == "within"]
    assert bounded
    for claim in bounded:
        spec, said = claim.spec, claim.spec["statement"].lower()
        if spec.get("ratio"):
            assert spec["margin"] <= (3.17 if "orders of magnitude" in said else 1.415), claim.name
        elif isinstance(spec.get("than"), int | float) and f"{abs(spec['than']):g}" in re.findall(r"\d*\.?\d+", said):
            loose = bool(re.search(r"about|around|similar", said))
            half = 0.5 * 10.0 ** -len(f"{spec['than']:g}".partition(".")[2])
            assert spec["margin"] <= (margins_of(spec["metric"], spec["than"])[loose] or half), claim.name
