"""Away from the project's folder: from an editable install, which knows its checkout, and from a wheel."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

import clpapers
from clpapers import cli, home, provenance
from clpapers.archive.imported import PUBLISHED
from clpapers.streams import stream

ROOT = Path(__file__).parents[1]
ORDER = ["--dataset", "cifar10", "--seeds", "0-0", "--out", "streams"]


@pytest.fixture
def away(tmp_path, monkeypatch):
    """Another folder as the working one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_project_at_hand_comes_first(away):
    assert home.root() == ROOT
    (away / "config").mkdir()
    (away / "config/config.yaml").touch()
    assert home.root() == away


def test_a_name_of_the_project_finds_its_file_there_and_keeps_its_text(away, tmp_path_factory):
    project = tmp_path_factory.mktemp("project")
    (project / "results/a/deep").mkdir(parents=True)
    (project / "results/a/one.csv").write_text("1")
    (project / "results/a/deep/two.csv").write_text("2")
    folder = home.project_path("results", "a")
    assert not folder.exists()
    with home.entered(project):
        assert folder.is_dir()
        assert str(folder / "one.csv") == f"{folder}/one.csv" == "results/a/one.csv"
        assert (folder / "one.csv").read_text() == "1"
        assert os.stat(folder / "one.csv").st_size == 1
        assert pd.read_csv(folder / "one.csv").columns == ["1"]
        assert sorted(map(str, folder.iterdir())) == ["results/a/deep", "results/a/one.csv"]
        assert [str(path) for path in folder.glob("*.csv")] == ["results/a/one.csv"]
        assert sorted(map(str, folder.rglob("*.csv"))) == ["results/a/deep/two.csv", "results/a/one.csv"]
        assert all(path.is_file() for path in folder.rglob("*.csv"))
        assert folder.with_name("b").parent.name == "results"
        assert (folder / "one.csv").absolute() == (folder / "one.csv").resolve() == project / "results/a/one.csv"
        provenance.write_text(folder / "new/three.csv", "3")
        assert folder == Path("results/a")
        assert len({folder, Path("results/a")}) == 1
        assert home.project_path(away / "x") == away / "x"
    assert (project / "results/a/new/three.csv").read_text() == "3"
    assert list(away.iterdir()) == []


def test_results_are_those_of_the_checkout_or_as_published_and_the_folder_stays(away):
    assert len(clpapers.results.printed("stf/table1")) > 20
    measured, compared = clpapers.results.metrics("stf/table1"), clpapers.results.compare("stf/table1")
    assert set(measured["unit"]) == {"%"}
    assert compared["ours"].notna().any()
    assert len(compared) == len(pd.read_csv(ROOT / PUBLISHED / "metrics/stf/table1.reported.csv"))
    assert set(os.listdir()) == set()
    assert Path.cwd() == away


@pytest.mark.slow
def test_streams_files_to_start_from_and_trials_work_there(away, capsys):
    assert cli.main(["stream", "--paper", "stf", *ORDER]) == 0
    (file,) = (away / "streams").rglob("seed0.npz")
    assert stream.load(file).data[0] == "cifar10"
    assert cli.main(["new", "method", "mine"]) == 0
    assert cli.main(["new", "dataset", "mnist"]) == 2
    assert cli.main(["try", "mine.py"]) == 0
    assert cli.main(["next", "rules/table1", "--methods", "mine.py"]) == 0
    assert cli.main(["audit"]) == 2
    said = capsys.readouterr()
    assert "mine.py: a row in " in said.out
    assert "mine.py: a step takes " in said.out
    assert "mine.py: its row in stf/table1, 80 runs, takes some " in said.out
    assert "/mine-" in said.out.partition("80 runs, takes some ")[2]  # a run of the file in the folder at hand
    assert "the project has a dataset of this name" in said.err
    assert said.err.endswith("go to the project's folder, where the Snakefile is, and try again\n")


@pytest.mark.slow
def test_from_a_wheel_too(away):
    """Unpacked alone into a folder of packages, without the repository; which runs are next, it cannot say."""
    copy = away / "copy"
    kept = ["src", "config", "workflow", "setup.py", "pyproject.toml", "README.md", "LICENSE", f"{PUBLISHED}/metrics"]
    for part in kept:
        (copy / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", ROOT / part, copy / part], check=True)
    pip = f"{sys.executable} -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir wheels ./copy"
    subprocess.run(pip.split(), check=True)
    assert sorted(os.listdir(copy)) == sorted({part.partition("/")[0] for part in kept})  # no build/ is left
    (wheel,) = (away / "wheels").glob("*.whl")
    assert wheel.stat().st_size < 5e6
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(away / "packages")
    code = (
        "import sys; sys.path.insert(0, 'packages'); import clpapers; from clpapers import cli, home; "
        "assert home.root() == home.CARRIED, home.root(); "
        "assert clpapers.results.compare('stf/table1')['ours'].notna().any(); "
        f"assert cli.main(['stream', '--paper', 'stf', *{ORDER}]) == 0; "
        "assert cli.main(['new', 'method', 'mine']) == 0; assert cli.main(['try', '--contracts', 'mine.py']) == 0; "
        "assert cli.main(['next']) == 2"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=away)
    assert done.returncode == 0, done.stderr
    assert list((away / "streams").rglob("seed0.npz"))
