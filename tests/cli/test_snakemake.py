"""The command `snakemake`: a bare `--cores`, targets by name, short dry runs, folders that cannot be written to."""

import os
import signal
import sys
from pathlib import Path

import pytest
import yaml
from world import ROOT

from clpapers.cli import snakemake
from clpapers.cli.snakemake import (
    completed,
    enter_project,
    prepare,
    reach_programs,
    refuse_unknown,
    resolved,
)

LINES = yaml.safe_load(Path(__file__).with_name("command_lines.yaml").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A project's folder and a home of its own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)  # which the command takes for its process


@pytest.mark.parametrize("writable", [True, False])
def test_a_home_is_replaced_only_where_it_cannot_be_written(writable, tmp_path):
    if not writable:
        (tmp_path / "home").touch()
    prepare()
    assert os.environ["XDG_CACHE_HOME"] == ("" if writable else str(Path(".snakemake/cache").absolute()))
    assert not any(Path(".snakemake").iterdir())


def test_jobs_find_this_environments_programs(monkeypatch, tmp_path):
    """Without an activated environment, and with another one's before it."""
    mine, other = str(Path(sys.executable).parent), tmp_path / "other"
    other.mkdir()
    (other / "clpapers").touch(mode=0o755)
    for path, expected in [
        (f"{other}", f"{mine}:{other}"),
        (f"{other}:{mine}", f"{mine}:{other}:{mine}"),
        (f"{mine}:{other}", f"{mine}:{other}"),
    ]:
        monkeypatch.setenv("PATH", path)
        reach_programs()
        assert os.environ["PATH"] == expected


@pytest.mark.parametrize(("given", "meant"), LINES["completed"].items())
def test_what_a_command_line_leaves_out_is_added(given, meant):
    assert completed(given.split()) == meant.split()


@pytest.fixture
def project(tmp_path):
    """A project's folder with the real configuration and nothing built."""
    for part in ("config", "workflow", "Snakefile", "rules"):
        (tmp_path / "project" / part).symlink_to(ROOT / part)


@pytest.mark.parametrize("line", LINES["resolved"], ids=lambda line: line["given"])
def test_a_targets_or_a_papers_name_stands_for_its_files(project, line):
    """Targets whose hours a budget has told are not told again."""
    arguments, _, targets = resolved(line["given"].split())
    assert arguments == line["meant"].split()
    assert [f"{target.paper}/{target.name}" for target in targets] == line["told"]


@pytest.mark.parametrize(("given", "papers"), LINES["of whole papers"].items())
def test_a_papers_name_and_all_stand_for_what_a_build_of_the_papers_makes(project, given, papers):
    arguments, plan, targets = resolved(given.split())
    mine = [target for target in plan.targets.values() if target.paper in papers]
    assert targets == [target for target in mine if not target.spec.get("extra")]
    files = [argument for argument in arguments if argument.startswith("results/")]
    assert files == [str(path) for target in targets for path in target.outputs if given.startswith("streaming")]


@pytest.mark.parametrize("given", LINES["left to snakemake"])
def test_targets_that_may_be_made_are_left_to_snakemake(project, given):
    refuse_unknown(given.split(), given.split())


@pytest.mark.parametrize(("given", "due"), [("streaming/table1 -n", True), ("streaming/table1 --cores 1", False)])
def test_a_dry_run_says_how_long(project, given, due, monkeypatch, capsys):
    Path("Snakefile").touch()
    monkeypatch.setattr("sys.argv", ["snakemake", *given.split(), "--config", "scale=smoke"])
    monkeypatch.setattr("snakemake.cli.args_to_api", lambda options, parser: True)
    with pytest.raises(SystemExit):
        snakemake.main()
    said = capsys.readouterr().out
    assert said.startswith("Predicted for what is not there yet, ") == due
    assert bool(said) == due


@pytest.fixture
def elsewhere(folder, tmp_path):
    """A project in the folder at hand, and then another folder as the working one."""
    for file in ("Snakefile", "rules/common.smk", "config/config.yaml"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    os.chdir(tmp_path)
    return tmp_path / "project"


@pytest.mark.parametrize(
    "option", [["-d", "project"], ["--directory", "project"], ["--directory=project"], ["-dproject"]]
)
def test_a_build_in_another_folder_is_one_there(elsewhere, option):
    arguments = ["stf/figure2", "-n", "-s", "project/Snakefile", *option]
    enter_project(arguments)
    assert Path.cwd() == elsewhere
    assert arguments == ["stf/figure2", "-n", "--snakefile", str(elsewhere / "Snakefile")]


def test_another_workflow_is_left_alone(elsewhere):
    Path("other").touch()
    enter_project(["-s", "other"])
    assert Path.cwd() == elsewhere.parent


@pytest.mark.parametrize(
    ("given", "limited"),
    [([], False), (["--max-jobs-per-timespan", "3/1s"], True), (["--executor", "slurm", "--jobs", "2"], True)],
)
def test_the_rate_of_jobs_has_no_limit_on_this_machine_unless_one_is_given(given, limited, monkeypatch):
    ran = []
    monkeypatch.setattr("snakemake.cli.args_to_api", lambda options, parser: ran.append(options))
    with pytest.raises(SystemExit) as ended:
        snakemake.run(["--workflow-profile", "none", *given])
    assert ended.value.code == 1
    assert bool(ran[0].max_jobs_per_timespan) is limited
