"""What an edit reruns: what it affects and nothing else. Asked of `snakemake -n` in a finished project."""

import random
import re
import shutil

import pytest
from project import Project

RENDERED = {
    "results/mini/targets/mini/table1.csv",
    "results/mini/targets/mini/table1.reported.csv",
    "results/mini/targets/mini/table1.paired.csv",
    "results/mini/targets/mini/table2.csv",
    "results/mini/targets/mini/figure1.pdf",
}
STATEMENT = "\n\nEDITED = True\n"


@pytest.fixture
def append(built):
    """Append text to a file of the project, and see what would run."""

    def plan(file, text):
        with (built.folder / file).open("a") as opened:
            opened.write(text)
        return built.plan()

    return plan


@pytest.mark.parametrize("whole", [True, False])
def test_what_was_copied_without_its_times_is_as_built(built, tmp_path, whole):
    """File by file in any order, as by scp or in a new clone, with Snakemake's own notes and without."""
    files = [path for path in built.folder.rglob("*") if path.is_file() and (whole or ".snakemake" not in path.parts)]
    random.Random(0).shuffle(files)
    copy = tmp_path / "copy"
    for path in files:
        place = copy / path.relative_to(built.folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        place.chmod(path.stat().st_mode)
    other = Project(copy)
    assert other.plan() == []
    stream = next((copy / "results/mini/streams/mnist").rglob("seed0.npz"))
    stream.write_bytes(stream.read_bytes() + b"x")  # for which no record vouches
    assert other.plan()


def test_a_comment_or_a_docstring_reruns_nothing(built, append):
    built.edit("src/clpapers/runs/learners/er.py", '"""Experience replay."""', '"""Experience replay, explained."""')
    built.edit("src/clpapers/runs/loop.py", "\nimport sys\n", "\nimport sys  # for stderr\n\n")
    assert append("src/clpapers/runs/learners/er.py", "\n# A remark.\n") == []


def test_a_renderer_renders_its_own_targets_anew(append):
    assert append("src/clpapers/targets/class_frequency.py", STATEMENT) == ["results/mini/targets/mini/figure1.pdf"]


def test_the_house_style_renders_all_anew_and_never_retrains(append):
    tables = {path for path in RENDERED if "table" in path}
    assert set(append("src/clpapers/targets/formats.py", STATEMENT)) == tables
    assert set(append("src/clpapers/targets/figure.py", STATEMENT)) == RENDERED


def test_what_experiments_declare_renders_all_anew_and_measures_nothing(append):
    compared = {path for path in RENDERED if ".reported" in path or ".paired" in path}
    assert set(append("src/clpapers/evidence/conditions.py", STATEMENT)) == RENDERED - compared


def test_a_measure_measures_and_renders_anew(append):
    assert set(append("src/clpapers/metrics/architecture.py", STATEMENT)) == {
        "results/mini/metrics/mini/table2.csv",
        "results/mini/targets/mini/table2.csv",
    }


def test_a_learner_retrains_its_own_runs(append):
    planned = append("src/clpapers/runs/learners/er.py", STATEMENT)
    trained = [path for path in planned if "/runs/" in path]
    assert len(trained) == 2
    assert all("/er-" in path for path in trained)
    assert {path for path in planned if "/runs/" not in path} == {
        "results/mini/metrics/mini/table1.csv",
        "results/mini/targets/mini/table1.csv",
        "results/mini/targets/mini/table1.reported.csv",
        "results/mini/targets/mini/table1.paired.csv",
    }


def test_a_learner_that_nobody_uses_retrains_nothing(append):
    assert append("src/clpapers/runs/learners/gmed.py", STATEMENT) == []


def test_a_net_retrains_the_runs_that_learn_with_it(append):
    planned = append("src/clpapers/runs/nets/cnn.py", STATEMENT)
    assert [path for path in planned if "/runs/" in path] == ["results/mini/runs/nets/mini/cifar10.json"]


def test_the_command_that_trains_retrains_all(built):
    """What stands between a path and its result is part of the code that makes it."""
    train = "            results = loop.train("
    built.edit("src/clpapers/cli/runs.py", train, f'            results = [{{"final_accuracy": 1.0}}]\n{train}')
    planned = built.plan()
    assert sum("/runs/mnist/" in path for path in planned) == 4
    assert not any("/streams/" in path or "/datasets/" in path or "/nets/" in path for path in planned)


def test_a_command_makes_its_own_files_anew_and_not_those_of_the_commands_beside_it(built):
    built.edit("src/clpapers/cli/runs.py", "rows.append(row | factors)", "rows.append(factors | row)")
    assert built.plan() == ["results/mini/runs/index.csv"]


@pytest.mark.parametrize(
    "file", ["cli/commands.py", "cli/job_context.py", "cli/describe.py", "cli/report.py", "jobs.py"]
)
def test_what_finds_and_calls_a_command_reruns_nothing(append, file):
    assert append(f"src/clpapers/{file}", STATEMENT) == []


def test_a_reworded_refusal_of_the_configuration_makes_nothing_anew(built):
    built.edit("src/clpapers/config/schemas.py", "is not one of {names", "is none of {names")
    built.edit("src/clpapers/config/checks.py", "draws no {spec['kind']}", "does not draw a {spec['kind']}")
    assert built.plan() == []


def test_the_loop_retrains_all_and_streams_nothing_anew(append):
    planned = append("src/clpapers/runs/loop.py", STATEMENT)
    assert sum("/runs/mnist/" in path for path in planned) == 4
    assert not any("/streams/" in path or "/datasets/" in path for path in planned)


def test_the_streams_code_leaves_the_data_sets(append):
    planned = append("src/clpapers/streams/stf.py", STATEMENT)
    assert not any("/datasets/" in path for path in planned)
    assert sum("/streams/" in path for path in planned) == 3
    assert sum("/runs/mnist/" in path for path in planned) == 4


def test_a_caption_renders_its_own_target_anew(built):
    built.edit("config/papers/mini.yaml", "Two streams.", "Two streams, over time.")
    assert built.plan() == ["results/mini/targets/mini/figure1.pdf"]


def test_a_printed_number_renders_what_it_is_compared_with(built):
    built.edit("config/reported/mini.csv", "80.1", "80.2")
    assert set(built.plan()) == {path for path in RENDERED if "table1" in path} - {
        "results/mini/targets/mini/table1.paired.csv"
    }


def test_a_hyperparameter_trains_a_new_cell_beside_the_old(built):
    built.edit("config/papers/mini.yaml", "memory: 10", "memory: 12")
    planned = built.plan()
    trained = [path for path in planned if "/runs/mnist/" in path]
    assert len(trained) == 4
    assert not any((built.folder / path).exists() for path in trained)
    assert not any("/streams/" in path or "/datasets/" in path for path in planned)


def test_more_seeds_train_only_those(built):
    built.edit("config/scales/mini.yaml", "seeds: 0-1", "seeds: 0-2")
    planned = built.plan()
    trained = [path for path in planned if "/runs/mnist/" in path]
    assert len(trained) == 2
    assert all(path.endswith("/seed2.json") for path in trained)
    assert [path for path in planned if "/streams/" in path] == ["results/mini/streams/mnist/stf-0.05-n30/seed2.npz"]


def test_a_new_method_trains_only_its_own_runs(built):
    built.edit(
        "config/papers/mini.yaml",
        "  ace: {forward: separate}",
        "  ace: {forward: separate}\n  gdumb: {memory_batch: 5}",
    )
    built.edit("config/papers/mini.yaml", "learner: [er, ace]", "learner: [er, ace, gdumb]")
    trained = [path for path in built.plan() if "/runs/mnist/" in path]
    assert len(trained) == 2
    assert all("/gdumb-" in path for path in trained)


def test_another_folder_for_the_data_reruns_nothing(built):
    (built.folder / "elsewhere").mkdir()
    assert built.plan("--config", "data_folder=elsewhere", "downloads=elsewhere") == []


def test_a_target_that_is_gone_is_rendered_anew(built):
    (built.folder / "results/mini/targets/mini/table1.html").unlink()
    assert built.plan() == ["results/mini/targets/mini/table1.csv"]


def test_a_job_that_fails_leaves_what_it_had_made_before_and_is_done_again(built):
    """A renderer and a measure with a fault; the record goes, so that nothing passes for what it is not."""
    before = built.results()
    texts = {
        file: (built.folder / file).read_text(encoding="utf-8")
        for file in ("src/clpapers/targets/results_table.py", "src/clpapers/metrics/stream_classes.py")
    }
    for file, text in texts.items():
        built.write(file, re.sub(r"^(def (?:render|measure)\()", r"raise KeyError\n\n\n\1", text, flags=re.MULTILINE))
    failed = built.snakemake("all", "--cores", "2")
    assert failed.returncode == 1
    assert failed.stdout.count("Error in rule table:") == failed.stdout.count("Error in rule metrics:") == 1
    assert built.results() == before
    records = [f"results/mini/{each}.record.json" for each in ("targets/mini/table1", "metrics/mini/figure1")]
    assert not any((built.folder / record).exists() for record in records)
    for file, text in texts.items():
        built.write(file, text)
    built.build()
    assert built.results() == before
    assert all((built.folder / record).exists() for record in records)
