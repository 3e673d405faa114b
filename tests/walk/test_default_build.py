"""`make` in a fresh clone, then what its user does first: audits it, and types `make` again."""

import os
import re

import pytest
from shell import Shell

FEW = 5  # lines that a user reads: an untouched build needs no more


@pytest.fixture(scope="module")
def user(built_project, tmp_path_factory):
    return Shell(built_project, built_project / ".venv", tmp_path_factory.mktemp("home"))


def test_it_has_the_report_and_the_proof(built_project):
    results = built_project / "results/paper"
    assert (results / "report/index.html").is_file()
    outcomes = (results / "verified.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(outcomes) >= 4
    assert not [line for line in outcomes if re.search(r",(differs|not trained),", line)]


def test_the_audit_passes_in_a_few_lines(user):
    said = user.run("clpapers audit")
    *told, last = said.out.splitlines()
    assert re.search(r" 0 failures", last), said.out
    assert said.code == 0
    assert len(told) <= FEW, said.out


def test_the_audit_says_the_same_of_data_that_a_proof_elsewhere_fetches(copied, user, tmp_path):
    """The proof draws runs by the speed of the machine: on some their data set is one that no default target reads."""
    user = user._replace(folder=copied(tmp_path / "copy"))
    user.ok("clpapers dataset --out results/paper/datasets/fashion_mnist.npz --data-folder data --downloads downloads")
    assert " 0 failures" in user.ok("clpapers audit")


def test_make_again_has_nothing_to_do(built_project, user):
    def there():
        files = (path for path in (built_project / "results/paper").rglob("*") if path.is_file())
        return {path: path.stat().st_mtime_ns for path in files}

    before = there()
    said = user.run("make")
    assert said.code == 0, said.err
    assert "Nothing to be done" in said.out + said.err
    assert there() == before


def test_a_second_user_may_read_every_result(built_project):
    """Files are made beside their place and moved there: their modes are those that the umask gives, all the same."""
    mask = os.umask(0)
    os.umask(mask)
    files = [path for path in (built_project / "results").rglob("*") if not path.is_symlink()]
    wrong = {path for path in files if path.stat().st_mode & 0o666 != 0o666 & ~mask}
    assert sorted(wrong) == []
