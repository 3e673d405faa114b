"""What is wrong is refused before anything starts: one line that says what and where, and no traceback."""

import fcntl

import pandas as pd
import pytest

INDEX = "results/mini/runs/index.csv"


def refused(project, *arguments, line):
    done = project.snakemake(*arguments)
    said = [text for text in done.stdout.splitlines() if text.startswith("clpapers:")]
    assert done.returncode != 0
    assert len(said) == 1, done.stdout
    assert said[0].startswith(f"clpapers: {line}")
    assert "Traceback" not in done.stdout
    assert not (project.folder / "results").exists()


@pytest.mark.parametrize(
    ("setting", "problem"),
    [("scale=lptop", "scale: 'lptop' is not one of mini, paper, smoke"), ("sclae=x", "(top): unknown key 'sclae'; ")],
)
def test_a_wrong_setting_on_the_command_line(pristine, setting, problem):
    line = f"config/config.yaml or --config: {problem}"
    refused(pristine, "all", "--cores", "1", "--config", setting, line=line)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"__use_yte__: true\n__definitions__:\n  - import os\n  - os.mkdir('planted')\n", " or --config: "),
        (b"scale: !!python/object/apply:os.mkdir ['planted']\n", ": line 1 "),
        (b"scale: \xe9\n", ": 'utf-8' codec can't decode"),
        (b"", ": holds no keys"),
        (b"scale: mini\nscale: mini\n", ": line 2 key 'scale' stands twice"),
        (None, ": no such file"),
    ],
)
def test_the_file_of_settings_is_read_by_us_alone(project, content, problem):
    file = project.folder / "config/config.yaml"
    file.unlink() if content is None else file.write_bytes(content)
    refused(project, "all", "--cores", "1", line=f"config/config.yaml{problem}")
    assert not (project.folder / "planted").exists()
    told = ": not here; go to the project's folder" if content is None else problem
    told = told.removeprefix(" or --config")  # which a command other than Snakemake does not have
    assert project.clpapers("summary").stdout.startswith(f"clpapers: config/config.yaml{told}")


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("config/papers/mini.yaml", "memory: 10", "memory: -1", "defaults.budget.memory: -1 must be at least 1"),
        ("config/reported/mini.csv", "mini,table1", "mini,tabel1", "line 2.target: 'tabel1' is not one of table1, "),
        ("config/scales/mini.yaml", "seeds: 0-1", "seeds: 1-0", "seeds: '1-0' holds no seed; write first-last, "),
    ],
)
def test_a_wrong_file(project, file, old, new, problem):
    project.edit(file, old, new)
    refused(project, "all", "--cores", "1", line=f"{file}: {problem}")


def test_a_mistyped_target(pristine):
    path = "results/mini/targets/mini/tabel1.csv"
    line = f"{path}: no target 'mini/tabel1' in what config/ asks for; there are: mini/table1, "
    refused(pristine, path, "--cores", "1", line=line)


def test_too_few_test_items(project):
    """What only the data tell is refused in one line too: one test item for two tasks."""
    project.edit(
        "config/papers/mini.yaml", "name: stf, mu_sigma: 0.05, length: 30", "name: split, tasks: 2, length: 30"
    )
    project.edit("config/papers/mini.yaml", "test: 20", "test: 1, shots: 1")
    stream = "results/mini/streams/mnist/split-2-n30/seed0.npz"
    for stage, out in (("dataset", "results/mini/datasets/mnist.npz"), ("stream", stream), ("index", INDEX)):
        done = project.clpapers(stage, "--out", out)
        assert done.returncode == 0, done.stdout
    cells = pd.read_csv(project.folder / INDEX)
    path = cells.loc[cells["targets"] == "mini/table1", "path"].iloc[0]
    done = project.clpapers("train", "--out", f"{path}/seed0.json")
    assert done.returncode == 2
    assert "Traceback" not in done.stdout
    (line,) = (text for text in done.stdout.splitlines() if text.startswith("clpapers: "))
    assert line.startswith(f"clpapers: {path}/seed0.json: evaluation.test: seed 0 has no item for its task ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "train --out results/mini/runs/mnist/stf-0.05-n30/er-0123456789/seed0.json",
            "results/mini/runs/mnist/stf-0.05-n30/er-0123456789/seed0.json: no cell 'er-0123456789' in what "
            "config/ asks for; results/mini/runs/index.csv lists them",
        ),
        ("lineage results/nothing.csv", "results/nothing.csv: no such file; build it with snakemake"),
        (
            "stream --out results/mini/streams/mnist/stf-0.05-n30/0.npz",
            "0: not the seeds of a file; a file is named like seed3 or seeds0-19",
        ),
        (
            "net --out results/mini/runs/nets/mini/mnits.json",
            "results/mini/runs/nets/mini/mnits.json: no net 'mini/mnits' in what config/ asks for; there are: "
            "mini/mnist, mini/cifar10",
        ),
        ("table --out table1.csv", "table1.csv: not a path of the pipeline; it begins with results/<scale>/<stage>/"),
        (
            "stream --out results/mini/streams/mnist/stf-0.05-n30/seed0.npz",
            "results/mini/datasets/mnist.npz: No such file or directory; let Snakemake make it and give the same "
            "command again",
        ),
    ],
)
def test_the_command_line_misused(pristine, arguments, line):
    done = pristine.clpapers(*arguments.split())
    assert (done.returncode, done.stdout) == (2, f"clpapers: {line}\n")
    assert not (pristine.folder / "results").exists()


def test_a_second_build_in_one_folder_is_refused_and_a_dry_run_is_not(project):
    """The lock is a living process's: it goes with the build, however that ends."""
    (project.folder / ".snakemake").mkdir(exist_ok=True)
    with (project.folder / ".snakemake/alive").open("a") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        refused(project, "all", "--cores", "1", line="another build is at work in this folder")
        assert project.snakemake("all", "-n").returncode == 0
