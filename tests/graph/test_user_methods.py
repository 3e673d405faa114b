"""A method from outside: what its file must be, and the line that says what it is not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clpapers.catalogue.methods import copied, method_of
from clpapers.cli import main
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.graph import jobs, user_methods

FILE, AUTHORS, PLAIN = yaml.safe_load(Path(__file__).with_name("texts.yaml").read_text()).values()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""A method."""', '"""Another text."""', True),
        ("import torch\n", "import torch  # so\n", True),
        ('"""A method."""', '\ufeff"""A method."""', True),  # a byte order mark, which editors put before a text
        ('"default": 1.0', '"default": 2.0', False),
    ],
)
def test_its_digest_is_that_of_what_it_means(file, old, new, same):
    digest = user_methods.check(file)
    file.write_text(FILE.replace(old, new), encoding="utf-8")
    assert (user_methods.check(file) == digest) == same
    copy = file.with_name(f"mine-{digest}.py")
    copy.write_bytes(file.read_bytes())
    method = copied(copy)
    assert (method.name, method.file) == ("mine", str(copy))
    assert method.examples() == [{"strength": 1.0 if same else 2.0}]
    assert method_of({"name": "mine", "file": str(copy), "strength": 3}).needs == {"net.name": ["mlp"]}


def test_checking_it_neither_runs_it_nor_imports_torch(file):
    file.write_text(FILE + "\nraise SystemExit('it was run')\n")
    code = "import sys; from pathlib import Path; from clpapers.graph import user_methods; "
    code += f"user_methods.check(Path({str(file)!r})); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("base", ["clpapers.Learner", "clpapers.Replay", "clpapers.runs.learners.er.ER", "ER"])
def test_whatever_it_descends_from_a_learner_by(file, base):
    beside = "import clpapers\nimport clpapers.runs.learners.er\nfrom clpapers.runs.learners.er import ER\nMid = 1\n"
    text = FILE.replace("import torch\n", beside, 1)
    file.write_text(text.replace("class Mine(Base)", f"class Mine({base})"))
    user_methods.check(file)
    file.write_text(text.replace("class Mine(Base)", "class Mine(Mid)"))
    with pytest.raises(ConfigError):
        user_methods.check(file)


@pytest.mark.parametrize("base", ["Method", "clpapers.Method"])
def test_a_class_of_one_seed_needs_no_declaration(file, base):
    for name in ("DECLARATION", "OTHER"):
        file.write_text(AUTHORS.replace("DECLARATION", name).replace("(Method)", f"({base})"))
        user_methods.check(file)


def test_a_new_file_is_a_method_and_nothing_is_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "method", "fresh"]) == 0
    user_methods.check(Path("fresh.py"))
    Path("fresh.py").write_text("mine")
    assert main(["new", "method", "fresh"]) == 2
    assert Path("fresh.py").read_text() == "mine"
    assert main(["new", "method", "er"]) == 2
    assert [line[:10] for line in capsys.readouterr().err.splitlines()] == ["clpapers: ", "clpapers: "]
    assert not Path("er.py").exists()


def test_the_papers_own_knows_nothing_of_it(tmp_path):
    """Claims, departures from the paper's settings and cells of the real papers are what they are without it."""
    copy = tmp_path / "mine-0123456789.py"
    copy.write_text(FILE.replace('"needs": {"net.name": ["mlp"]}', '"uses": ["competing"]'))
    with_it, without = Plan("smoke", all_papers(), methods=[str(copy)]), Plan("smoke", all_papers())
    claims, others = (
        {claim.name: repr(claim.parts) for paper in jobs.claims_of(plan).values() for claim in paper}
        for plan in (with_it, without)
    )
    assert claims == others
    shown = [name for name, target in with_it.targets.items() if target.spec.get("own")]
    assert {name.partition("/")[0] for name in shown} == {*all_papers()}
    for name in shown:
        one, other = with_it.targets[name], without.targets[name]
        assert jobs.reduced(with_it, one) == jobs.reduced(without, other)
        assert (one.of_paper.cells, one.of_paper.selections) == (other.cells, other.selections)
        assert any(factors["learner"] == "mine" for factors, _ in (*one.cells, *one.selections))
    assert without.cells.keys() < with_it.cells.keys()


@pytest.mark.parametrize(
    ("loss", "knows"),
    [
        ("F.cross_entropy(logits, y)", False),
        ("self.loss(logits, y)", True),
        ("F.nll_loss(self.masked(logits, y).log_softmax(1), y)", True),
    ],
)
def test_a_table_that_restricts_the_classes_has_a_row_of_a_method_that_asks_for_them(tmp_path, loss, knows):
    """Told by name: Figures 4 and 5 of `desiderata` have a head for each task, Figures 2 and 3 have one for all."""
    file, figures = tmp_path / "mine.py", [f"desiderata/figure{number}" for number in range(2, 6)]
    file.write_text(PLAIN.replace("LOSS", loss))
    plan = Plan("paper", ["desiderata"], methods=[str(file)])
    rows = {name for name, target in plan.targets.items() if any(f["learner"] == "mine" for f, _ in target.cells)}
    assert [name in rows for name in figures] == [True, True, knows, knows]
    first, *rest = user_methods.placement(plan, "mine")
    count, total = map(int, re.match(r"a row in (\d+) of the (\d+) tables and figures", first).groups())
    restricted = [line for line in rest if "they restrict the classes that compete; only `self.loss`" in line]
    assert (count == total) == (not restricted) == knows
    if not knows:
        names = restricted[0].partition(":")[0].split(", ")[1:]
        assert count + len(names) == total
        assert {*figures[2:]} <= {*names}


def test_a_learner_is_told_in_its_own_words(file):
    file.write_text(FILE.replace('    "needs": {"net.name": ["mlp"]},\n', ""))
    told = user_methods.placement(Plan("smoke", ["desiderata"], methods=[str(file)]), "mine")
    assert any('declare that it "uses" "competing", and train by `self.loss`' in line for line in told)
