"""Papers and data sets from outside: taken in once they pass, told from the project's own, refused in one line."""

import json
from pathlib import Path

import pytest
import yaml
from tiny_paper import MINE, SETTINGS, SHAPES, TEXT, WITH_OWN, edit, of_table, settings

from clpapers.config import user_files
from clpapers.config.facts import Facts
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers, check_settings, project_papers
from clpapers.config.targets import paper_file
from clpapers.datasets.sources import FORMATS

pytestmark = pytest.mark.usefixtures("folder")


def taken(away, **more):
    return settings(**{"papers": ["tiny", f"{away}/mine.yaml"], "datasets": [f"{away}/shapes.yaml"]} | more)


def mine():
    """The cells of the other paper's table by data set and learner."""
    return of_table(Plan("tiny", ["mine"]), "mine")


def write_numbers(away):
    header = "paper,target,row,column,metric,value,spread,spread_kind,note\n"
    (away / "mine.csv").write_text(f"{header}mine,table1,er,shapes,final_accuracy,80.1,0.5,ci95_halfwidth_20_runs,\n")


def copies():
    found = Path("config/outside").rglob("*.*")
    return {str(path.relative_to("config/outside")) for path in found if path.name[0] != "."}


def test_a_paper_and_a_data_set_are_known_by_their_names(away):
    before = Plan("tiny", ["tiny"]).digest
    assert taken(away)["papers"] == ["tiny", "mine"]
    assert Plan("tiny", ["tiny"]).digest == before
    assert copies() == {"papers/mine.yaml", "datasets/shapes.yaml"}
    assert (project_papers(), all_papers()) == (["tiny"], ["tiny", "mine"])
    plan = Plan("tiny", all_papers())
    assert {dataset for dataset, _ in mine()} == {"shapes", "cifar10"}
    assert plan.datasets["shapes"]["declared"] == "config/outside/datasets/shapes.yaml"
    assert "declared" not in plan.datasets["mnist"]
    assert mine()["shapes", "er"].spec["budget"]["memory"] == 5  # as its file says of the scale
    assert {cell.spec["budget"]["memory"] for cell in of_table().values()} == {10, 7}
    assert plan.about["mine"]["from_outside"]
    assert "from_outside" not in plan.about["tiny"]


def test_what_was_taken_in_stays_and_an_edit_counts_once_it_is_named_again(away):
    taken(away)
    assert "mine" in all_papers()
    before = Plan("tiny", ["mine"]).digest
    edit(away / "mine.yaml", "learning_rate: 0.1", "learning_rate: 0.2")
    assert Plan("tiny", ["mine"]).digest == before  # in the middle of a build nothing changes
    assert settings(papers=["mine"])["papers"] == ["mine"]
    assert Plan("tiny", ["mine"]).digest == before
    taken(away)
    assert Plan("tiny", ["mine"]).digest != before


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_printed_numbers_stand_beside_it_and_go_with_it(away, mark):
    """A byte order mark before any of the files means nothing; spreadsheets write them."""
    write_numbers(away)
    for name in ("mine.csv", "mine.yaml", "shapes.yaml"):
        (away / name).write_text(mark + (away / name).read_text(), encoding="utf-8")
    assert taken(away)["papers"] == ["tiny", "mine"]
    target = Plan("tiny", ["mine"]).targets["mine/table1"]
    assert target.reported == Path("config/outside/reported/mine.csv")
    assert any(path.name == "table1.reported.csv" for path in target.outputs)
    (away / "mine.csv").unlink()
    taken(away)
    assert Plan("tiny", ["mine"]).targets["mine/table1"].reported is None


def test_an_edit_that_is_wrong_or_that_another_paper_cannot_have_leaves_what_was_taken_in(away):
    edit(away / "mine.yaml", "length: null", "length: 30")
    taken(away)
    too_few = r"config/outside/papers/mine\.yaml: .*order\.length: 30 is more than the 20"
    for old, new, line, papers in (
        ("shape: [8, 8, 1]", "shape: [8, 8, 2]", "shape", ["tiny", f"{away}/mine.yaml"]),
        ("train: 40", "train: 20", too_few, ["tiny"]),
    ):
        (away / "shapes.yaml").write_text(SHAPES.replace(old, new))
        with pytest.raises(ConfigError, match=line):
            taken(away, papers=papers)
    facts = Facts("tiny").datasets["shapes"]
    assert (facts["shape"], facts["train"]) == ([8, 8, 1], 40)


def test_one_that_does_not_pass_at_another_scale_says_where_to_mend_it(away):
    """A build of that scale is refused though it names other papers: all that were taken in are known to it."""
    (away / "mine.yaml").write_text(MINE + "  real: {datasets: {mnist: {}}}\n")
    taken(away)
    with pytest.raises(ConfigError, match=r"^config/outside/papers/mine\.yaml: .*'mnist' is not one of ") as refusal:
        Plan("real", ["tiny", "mine"])
    remedy = f"; mend {away}/mine.yaml and build it at this scale, or delete the copy to forget it"
    assert str(refusal.value).endswith(remedy[-80:])
    Path("config/outside/papers/mine.yaml").unlink()
    Plan("real", ["tiny"])


def test_a_scale_that_knows_the_paper_goes_first(away):
    """A paper of the project may be kept in step with its scale's file alone."""
    taken(away)
    with Path("config/scales/tiny.yaml").open("a") as scale:
        scale.write("  mine: {defaults: {budget: {memory: 6}}}\n")
    with pytest.raises(ConfigError, match="'mine' has no file in config/papers/"):
        Plan("tiny", ["mine"])
    Path("config/papers/mine.yaml").write_text(MINE)
    Path("config/outside/papers/mine.yaml").unlink()
    assert {cell.spec["budget"]["memory"] for cell in mine().values()} == {6, 7}


def test_where_its_images_are_is_no_fact_of_a_data_set(away):
    """The same bytes from another folder are no reason to make anything anew."""
    taken(away)
    spec = Facts("tiny").datasets["shapes"]
    assert str(away) not in json.dumps(spec)
    assert user_files.data_folder(spec, "data") == away
    assert user_files.data_folder(Facts("tiny").datasets["mnist"], "data") == Path("data")
    user_files.WHENCE.unlink()  # as in a crate
    assert user_files.data_folder(spec, "data") == Path("data")
    user_files.WHENCE.write_text("[1")
    assert user_files.data_folder(spec, "data") == Path("data")


PAPER_COPY, DATA_COPY = "config/outside/papers/mine.yaml", "config/outside/datasets/shapes.yaml"


@pytest.mark.parametrize(
    ("rested", "files"),
    [
        ([PAPER_COPY], ["targets/mine/table1.csv", "metrics/mine/table1.csv", "runs/nets/mine/shapes.json"]),
        ([DATA_COPY], ["datasets/shapes.npz", "runs/shapes/random/er-0/seed0.json"]),
        ([], ["targets/tiny/table1.csv", "datasets/mnist.npz", "runs/index.csv", "targets/scorecard.csv"]),
    ],
)
def test_what_rests_on_a_file_from_outside(away, rested, files):
    taken(away)
    datasets = Plan("tiny", all_papers()).datasets
    for path in files:
        assert [item["path"] for item in user_files.rested_on(Path("results/tiny", path), datasets)] == rested
    assert paper_file("mine") == Path(PAPER_COPY)


def test_the_schema_lists_every_format():
    rules = Path("workflow/schemas/datasets.schema.yaml").read_text()
    assert all(name in rules for name in FORMATS)


@pytest.fixture
def with_own(away):
    (away / "mine.yaml").write_text(WITH_OWN)
    return away


def test_a_paper_brings_methods_of_its_own_along_and_they_go_with_it(with_own):
    """Cells name a copy by the digest of the code and give its options' defaults; no other paper has a row of it."""
    taken(with_own)
    (copy,) = (name for name in copies() if name.startswith("methods/"))
    ace = mine()["shapes", "ace"]
    assert ace.spec["learner"] == {"name": "mine", "file": f"config/outside/{copy}", "rate": 1.0}
    assert ace.folder.name.startswith("mine-")
    assert mine()["shapes", "er"].method is None
    assert {learner for _, learner in of_table()} == {"er", "ace"}
    (with_own / "mine.yaml").write_text(MINE)
    taken(with_own)
    assert not [name for name in copies() if name.startswith("methods/")]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [("= 1.0", "= 2.0", True), ("A method of", "Another of", False), ("(self, x", "(self,x", False)],
)
def test_an_edit_of_its_code_makes_another_cell_and_leaves_no_old_copy(with_own, old, new, changes):
    taken(with_own)
    before = mine()
    edit(with_own / "mine.py", old, new)
    taken(with_own)
    after = mine()
    assert (before["shapes", "ace"].hash != after["shapes", "ace"].hash) == changes
    assert before["shapes", "er"].hash == after["shapes", "er"].hash
    assert len([name for name in copies() if name.startswith("methods/")]) == 1


def test_what_only_describes_a_build_reads_the_originals_and_copies_no_paper(with_own):
    """A paper that is no longer right then stands in nobody's way."""
    given = {"papers": ["tiny", f"{with_own}/mine.yaml"], "datasets": [f"{with_own}/shapes.yaml"]}
    assert check_settings(yaml.safe_load(TEXT[SETTINGS]) | given, keep=False)["papers"] == ["tiny", "mine"]
    assert "mine/table1" in Plan("tiny", ["mine"]).targets
    assert {name.partition("/")[0] for name in copies()} == {"methods"}
    user_files.lay({})  # as in the next process
    assert all_papers() == ["tiny"]
