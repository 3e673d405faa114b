"""The grammar of claims: what is wrong is refused in one telling line; what is right becomes parts."""

import re
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
def parts_of(configured):
    """The parts of the claim, with other words; its sides, part by part."""

    def read(*changes):
        text = CLAIM
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        Path("config/claims.yaml").write_text(text, encoding="utf-8")
        (claim,) = claims_of(Plan("paper", ["stf"]))["stf"]
        return claim.parts

    return read


@pytest.fixture(scope="module")
def resolved():
    """All papers' claims at each scale."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {scale: claims_of(Plan(scale, all_papers())) for scale in ("smoke", "paper")}


def test_every_claim_of_every_paper_has_parts_that_run_and_is_there_at_other_scales_too(resolved):
    names = {s: {(p, c.name) for p, of_paper in there.items() for c in of_paper} for s, there in resolved.items()}
    assert {paper for paper, _ in names["paper"]} == {"agem", "desiderata", "rules", "stf", "streaming"}
    assert len(names["paper"]) >= 60
    assert names["smoke"] == names["paper"]
    for claim in (claim for of_paper in resolved["paper"].values() for claim in of_paper):
        assert claim.parts, claim.name
        assert all(side.runs for part in claim.parts for side in part.sides), claim.name


def test_what_only_this_scale_leaves_out_does_not_run(resolved):
    (claim,) = (claim for claim in resolved["smoke"]["rules"] if claim.name == "offline_mm_best")
    runs = {part.sides[0].levels["oracle"]: part.sides[0].runs for part in claim.parts}
    assert runs["sp2"] is True
    assert runs["sp5"] is False


@pytest.mark.parametrize("paper", WRITTEN)
def test_no_two_claims_are_the_same_test(paper):
    words = ("statement", "section", "note")
    tests = [repr({k: v for k, v in claim.items() if k not in words}) for claim in WRITTEN[paper].values()]
    assert len(tests) == len(set(tests))


@pytest.mark.parametrize("case", yaml.safe_load(Path(__file__).with_name("parts.yaml").read_text()))
def test_a_claim_has_a_part_for_each_of_its_levels(parts_of, case):
    def named(sides):
        return [" ".join(map(str, side.levels.values())) for side in sides if side]

    parts = parts_of(*case["changes"])
    assert [", ".join(named(part.sides)) for part in parts] == case["parts"]
    assert {part.paired for part in parts} == {case["paired"]}
    sides = [side for part in parts for side in part.sides]
    assert named(side for side in sides if side.calibrated) == case.get("calibrated", [])
    assert named(side.less for side in sides) == case.get("less", [])


def test_a_bound_is_no_wider_than_its_sentences_words(resolved):
    """A number of times within √2, orders of magnitude within √10; a stated number within its metric's first margin, or
    the second if it is about, around or similar, or within half of its digit if the metric has no margin."""
    specs = [claim.spec for of_paper in resolved["paper"].values() for claim in of_paper]
    bounded = [spec for spec in specs if spec["test"] == "within"]
    assert bounded
    for spec in bounded:
        said = spec["statement"].lower()
        if spec.get("ratio"):
            assert spec["margin"] <= (3.17 if "orders of magnitude" in said else 1.415), said
        elif isinstance(spec.get("than"), int | float) and f"{abs(spec['than']):g}" in re.findall(r"\d*\.?\d+", said):
            loose = bool(re.search(r"about|around|similar", said))
            half = 0.5 * 10.0 ** -len(f"{spec['than']:g}".partition(".")[2])
            assert spec["margin"] <= (margins_of(spec["metric"], spec["than"])[loose] or half), said
