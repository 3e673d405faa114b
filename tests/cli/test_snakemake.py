"""The command `snakemake`: a bare `--cores`, targets by name, short dry runs, folders that cannot be written to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clpapers.cli import snakemake
from clpapers.cli.snakemake import (
    completed,
    enter_project,
    prepare,
    reach_programs,
    refuse_unknown,
    resolved,
)

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("all --cores", "all --cores=all --logger clpapers"),
        ("all -c", "all --cores=all --logger clpapers"),
        ("--cores -n all", "--cores=all -n all --quiet rules"),
        ("all --cores 4 -n", "all --cores 4 -n --quiet rules"),
        ("all --dry-run", "all --dry-run --quiet rules"),
        ("all -n -p", "all -n -p"),
        ("all -n --quiet", "all -n --quiet"),
        ("--dag -n", "--dag -n"),
        ("all --cores all", "all --cores all --logger clpapers"),
        ("all -c2", "all -c2 --logger clpapers"),
        ("all -c2 --verbose", "all -c2 --verbose"),
        ("all -c2 --logger rich", "all -c2 --logger rich"),
        ("audit -c2", "audit -c2"),
        ("all --unlock", "all --unlock"),
        ("", ""),
    ],
)
def test_completed(given, meant):
    assert completed(given.split()) == meant.split()


@pytest.fixture
def project(tmp_path):
    """A project's folder with the real configuration and nothing built."""
    for part in ("config", "workflow", "Snakefile", "rules"):
        (tmp_path / "project" / part).symlink_to(ROOT / part)


def files(stem, endings):
    return [f"results/{stem}.{ending}" for ending in endings]


TABLE1 = files("smoke/targets/stf/table1", ["csv", "md", "tex", "html", "reported.csv", "paired.csv"])
FIGURE3 = files("paper/targets/stf/figure3", ["pdf", "svg", "png", "caption.md", "caption.tex"])


@pytest.mark.parametrize(
    ("given", "meant", "wanted"),
    [
        ("stf/table1 --config scale=smoke -n", [*TABLE1, "--config", "scale=smoke", "-n"], ["stf/table1"]),
        ("stf/table1 --config scale=smoke hours=0", [*TABLE1, "--config", "scale=smoke", "hours=0"], []),
        ("-n stf/figure3 --config scale=paper", ["-n", *FIGURE3, "--config", "scale=paper"], []),
        ("audit --config scale=smoke", ["audit", "--config", "scale=smoke"], []),
        (TABLE1[0], TABLE1[:1], []),
        ("--until metrics stf.txt", ["--until", "metrics", "stf.txt"], []),
    ],
)
def test_a_targets_name_stands_for_its_files(project, given, meant, wanted):
    """Those that a budget has told the hours of are not told again."""
    arguments, _, targets = resolved(given.split())
    assert arguments == meant
    assert [f"{target.paper}/{target.name}" for target in targets] == wanted


@pytest.mark.parametrize(
    ("given", "papers"),
    [
        ("streaming --config scale=smoke", {"streaming"}),
        ("all -n --config papers=streaming scale=smoke", {"streaming"}),
        ("-n --config papers=streaming scale=smoke", {"streaming"}),
        ("all -n --config papers=[stf,rules] scale=smoke", {"stf", "rules"}),
    ],
)
def test_a_papers_name_and_all_stand_for_what_a_build_of_the_papers_makes(project, given, papers):
    arguments, plan, targets = resolved(given.split())
    mine = [target for target in plan.targets.values() if target.paper in papers]
    assert targets == [target for target in mine if not target.spec.get("extra")]
    files = [argument for argument in arguments if argument.startswith("results/")]
    assert files == [str(path) for target in targets for path in target.outputs if given.startswith("streaming")]


@pytest.mark.parametrize(
    "given",
    [
        "all --cores",
        "",
        "report -n --quiet rules",
        "--cores 2 --until nothing --forcerun neither",
        "Snakefile",
        "results/paper/targets/stf/table1.reported.csv results/paper/runs/index.csv results/paper/report/index.html",
        "results/paper/targets/stf/claims.md results/paper/targets/scorecard.md results/paper/datasets/mnist.npz",
        "results/paper/runs/cifar10/stf-0.057735/mine-0123456789/seed0.json --config methods=[mine.py]",
    ],
)
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


@pytest.mark.workflow
def test_a_reader_of_a_dry_run_that_leaves_early_gets_no_traceback():
    """As `| head -0` does: the pipe is closed before anything is written."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "clpapers.cli.snakemake", "-n", "streaming/unknown", "--config", "scale=smoke"],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
    assert b"Traceback" not in done.stderr


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
