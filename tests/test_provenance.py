"""Files appear whole or not at all; records say what happened; digests see meaning; seals see edits."""

import hashlib
import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from clpapers import provenance
from clpapers.provenance import (
    code_digest,
    git_state,
    is_path,
    read_record,
    record_path,
    recording,
    seal,
    sha256,
    why_no_commit,
    write_atomically,
    write_text,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files():
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


# --- write_atomically ----------------------------------------------------------------------------------------


def test_a_mount_that_sets_modes_itself_takes_files(monkeypatch):
    """One of CIFS, say, refuses `chmod`."""

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    with write_atomically("results/table.csv") as temporary:
        temporary.write_text("a,b")
    assert Path("results/table.csv").read_text() == "a,b"
    assert len(list(Path("results").iterdir())) == 1


def test_a_file_appears_at_the_end_and_alone():
    with write_atomically("results/deep/table.tar.csv") as temporary:
        temporary.write_text("whole")
        assert temporary.parent.resolve() == Path("results/deep").resolve()
        assert temporary.suffix == ".csv"
        assert temporary.name.startswith(".")
        assert not Path("results/deep/table.tar.csv").exists()
    assert files() == ["results/deep/table.tar.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_older_file_and_nothing_else(error):
    write_text("old.txt", "old")

    def fail():
        with write_atomically("old.txt") as temporary:
            temporary.write_text("half of the n")
            raise error

    with pytest.raises(error):
        fail()
    assert files() == ["old.txt"]
    assert Path("old.txt").read_text() == "old"


def test_a_kill_in_the_middle_of_writing_leaves_nothing_under_the_final_name():
    script = (
        "import os, signal\n"
        "from clpapers.provenance import write_atomically\n"
        "with write_atomically('result.json') as temporary:\n"
        "    temporary.write_text('{\"half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script])
    assert killed.returncode == -signal.SIGKILL
    (left,) = files()
    assert left.startswith(".result.")
    with recording("runs", [Path("result.json")], [], "code"):
        assert files() == []  # the next attempt clears what the kill left
        write_text("result.json", "{}")
    assert files() == ["result.json", "result.record.json"]


def test_the_next_attempt_clears_what_a_kill_left_of_a_record_and_nothing_of_another_job():
    write_text(".table1.record.abcd1234.json", '{"half')
    write_text(".table1.other.abcd1234.json", "{}")
    with write_atomically("table1.reported.csv") as beside, recording("targets", [Path("table1.csv")], [], "code"):
        assert sorted({".table1.other.abcd1234.json", beside.name}) == files()
        write_text("table1.csv", "a")
    assert Path("table1.reported.csv").is_file()


def test_text_is_utf8_with_bare_newlines_in_a_file_with_the_permissions_of_any_new_one():
    Path("plain").touch()
    write_text("text", "μ_σ\n")
    assert Path("text").read_bytes() == b"\xce\xbc_\xcf\x83\n"
    assert stat.S_IMODE(os.stat("text").st_mode) == stat.S_IMODE(os.stat("plain").st_mode)


# --- recording -----------------------------------------------------------------------------------------------


def make(stage, output, inputs=(), content="", **facts):
    """Run one stage; what goes into its record's `data` may be among the facts."""
    data = facts.pop("data", None)
    with recording(stage, [Path(output)], [Path(path) for path in inputs], "c0de", **facts) as record:
        write_text(output, content or f"{stage} of {list(inputs)}")
        if data:
            record["data"] = data


OF_ALL = {"owner": "someone", "licence": "some", "partial": False}
MNIST = {"source": "standin", "proof": "none", "standin": True, "sha256": {"train": "aa", "test": "bb"}}
CIFAR = {"source": "npm", "proof": "checksum", "standin": False, "sha256": {"train": "cc", "test": "dd"}}
MNIST, CIFAR = {"mnist": MNIST | OF_ALL}, {"cifar10": CIFAR | OF_ALL}


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """Two data sets, a stream and a run on each, one table of both."""
    monkeypatch.chdir(tmp_path)
    for name, facts in (("mnist", MNIST), ("cifar10", CIFAR)):
        make("datasets", f"results/{name}.npz", data=facts)
        make("streams", f"results/{name}-stream.npz", [f"results/{name}.npz"])
        make("runs", f"results/{name}-run.json", [f"results/{name}.npz", f"results/{name}-stream.npz"])
    Path("config").mkdir()
    Path("config/reported.csv").write_text("80.1")
    make("targets", "results/table.csv", ["results/mnist-run.json", "results/cifar10-run.json", "config/reported.csv"])
    return "results/table.csv"


def test_a_record_holds_what_ran_on_what_and_how_it_went(monkeypatch):
    make("datasets", "results/in.npz", data=MNIST)
    monkeypatch.setattr(sys, "argv", ["/bin/clpapers", "train", "--out", "a b.json"])
    outputs = [Path("results/a b.json"), Path("results/a b.csv")]
    with recording("runs", outputs, [Path("results/in.npz")], "c0de", seeds=[0, 1], hardware={"device": "abacus"}) as r:
        for path in outputs:
            write_text(path, path.suffix)
        r["peak_device_bytes"] = None
    record = json.loads(Path("results/a b.record.json").read_text())
    assert record["stage"] == "runs"
    assert record["command"] == "clpapers train --out 'a b.json'"
    assert (record["code"], record["seeds"], record["peak_device_bytes"]) == ("c0de", [0, 1], None)
    assert record["data"] == MNIST
    for entries, paths in ((record["inputs"], ["results/in.npz"]), (record["outputs"], outputs)):
        for entry, path in zip(entries, map(Path, paths), strict=True):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            assert entry | {"path": str(path), "sha256": digest, "bytes": path.stat().st_size} == entry
    assert record["hardware"]["device"] == "abacus"
    assert record["hardware"]["cores"] == os.cpu_count()
    assert record["wall_seconds"] >= 0
    assert record["peak_memory_bytes"] > 1e6
    assert record["python"].startswith("3.")
    assert {"git", "packages", "started", "cpu_seconds"} <= record.keys()


def test_data_are_inherited_through_all_generations(chain):
    assert read_record(chain)["data"] == MNIST | CIFAR
    assert read_record("results/mnist-run.json")["data"] == MNIST


def test_a_record_is_sealed_and_names_the_records_of_its_inputs(chain):
    record = read_record(chain)
    assert record["seal"] == seal(record)
    assert seal(record | {"code": "other"}) != record["seal"]
    assert [entry.get("record") for entry in record["inputs"]] == [
        sha256("results/mnist-run.record.json"),
        sha256("results/cifar10-run.record.json"),
        None,  # the configuration's
    ]
    with recording("metrics", [Path("costs.csv")], [Path("results/mnist-run.record.json")], "c0de", by_seed={0: 1.0}):
        write_text("costs.csv", "")
    record = read_record("costs.csv")
    assert record["seal"] == seal(record)
    assert "record" not in record["inputs"][0]  # a record itself


def test_a_crash_leaves_no_record_not_even_the_older_one():
    make("runs", "results/run.json")

    def crash():
        with recording("runs", [Path("results/run.json")], [], "c0de"):
            assert not record_path("results/run.json").exists()
            write_text("results/run.json", "new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crash()
    assert files() == ["results/run.json"]


def test_an_output_that_was_not_written_is_no_success():
    with pytest.raises(FileNotFoundError), recording("runs", [Path("a.csv"), Path("a.md")], [], "c0de"):
        write_text("a.csv", "")
    assert not record_path("a.csv").exists()


def test_inputs_of_the_future_are_dated_anew_and_others_are_not(chain):
    """After a clock was set back; Snakemake would throw away what is older than what it is made of."""
    run, other = Path("results/mnist-run.json"), Path("results/cifar10-run.json")
    os.utime(run, (time.time() + 3600,) * 2)
    os.utime(other, (1000, 1000))
    make("targets", chain, [run, other])
    assert 1000 == other.stat().st_mtime < run.stat().st_mtime <= Path(chain).stat().st_mtime


def test_files_that_differ_in_their_last_suffix_share_a_record():
    assert record_path("t/table1.csv") == record_path("t/table1.md") == Path("t/table1.record.json")
    assert record_path("t/table1.reported.csv") == Path("t/table1.reported.record.json")
    beside = {record_path(f"t/figure1{end}") for end in (".pdf", ".caption.tex", ".unrun.md", ".record.json")}
    assert beside == {Path("t/figure1.record.json")}


# --- code_digest ---------------------------------------------------------------------------------------------

DIGESTS = yaml.safe_load(Path(__file__).with_name("digests.yaml").read_text(encoding="utf-8"))


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def digest(folder):
    """The digest of `toy.loop` in a package where loop imports memory, memory imports draw, and plot is apart."""
    package = folder / "src" / "toy"
    package.mkdir(parents=True)
    for name, text in DIGESTS["modules"].items():
        (package / f"{name}.py").write_text(text)

    def of(*edits, modules=("toy.loop",)):
        for name, old, new in edits:
            text = (package / f"{name}.py").read_text()
            assert old in text
            (package / f"{name}.py").write_text(text.replace(old, new))
        spec = importlib.util.spec_from_file_location("provenance_of_toy", provenance.__file__)
        anew = importlib.util.module_from_spec(spec)  # without what it has parsed
        spec.loader.exec_module(anew)
        anew.PACKAGE = package
        return anew.code_digest(*modules)

    return of


def test_a_program_is_written_down_as_python_3_11_does(digest):
    """Python 3.12 adds `type_params=[]`, and 3.13 leaves out what is empty; a digest is the same on all of them."""
    call = "Call(func=Name(id='g', ctx=Load()), args=[], keywords=[])"
    item = f"Subscript(value=Dict(keys=[None], values=[{call}]), slice=Constant(value=None), ctx=Load())"
    of_none = "arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])"
    body = f"[FunctionDef(name='f', args={of_none}, body=[Return(value={item})], decorator_list=[])]"
    program = digest_of(f"Module(body={body}, type_ignores=[])")
    assert digest(modules=["toy.program"]) == digest_of(f"program.py  {program}")[:16]


@pytest.mark.parametrize(
    ("of", "edit", "counts"),
    [(of, *case.values()) for of, cases in DIGESTS.items() for case in cases if of != "modules"],
)
def test_a_digest_is_of_what_the_code_means_and_uses(digest, of, edit, counts):
    assert (digest(modules=[of]) != digest(edit, modules=[of])) is counts


def test_a_digest_is_of_what_is_named(digest):
    assert digest(modules=("toy.plot",)) != digest(modules=("toy.loop",))
    assert digest(modules=("toy.loop", "toy.plot")) == digest(modules=("toy.plot", "toy.loop"))


def test_how_records_are_written_counts_nowhere():
    assert code_digest("clpapers.provenance") == code_digest()
    assert code_digest("clpapers.provenance", "clpapers.streams.stf") == code_digest("clpapers.streams.stf")


# --- git -----------------------------------------------------------------------------------------------------


def git(*arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@invalid"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


NO_COMMIT = {"commit": None, "dirty": None}


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("GIT_CEILING_DIRECTORIES", "..", "not under git"),
        ("PATH", "", "git refuses: it is not installed"),
        ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1", "git refuses: detected dubious ownership in repository at "),
    ],
)
def test_without_git_there_is_no_commit_and_it_is_said_why(variable, value, why, monkeypatch, folder):
    if variable.startswith("GIT_TEST"):
        git("init")
    monkeypatch.setenv(variable, str(folder.parent) if value == ".." else value)
    assert git_state() == NO_COMMIT
    assert why_no_commit().startswith(why)


@pytest.fixture
def inside():
    """A project's folder, the one at hand, inside of another's repository."""
    Path("others").touch()
    git("init")
    git("add", "others")
    git("commit", "-m", "first")
    Path("project").mkdir()
    os.chdir("project")  # `folder` has it changed back
    Path("Snakefile").touch()


def test_the_repository_around_a_project_tells_nothing_of_it(inside):
    assert git_state() == NO_COMMIT
    assert why_no_commit() == f"not under git: the repository around it, {Path.cwd().parent}, does not have it"
    Path("../.gitignore").write_text("project")
    assert why_no_commit()


def test_a_project_that_another_repository_has_is_part_of_it(inside):
    git("add", "Snakefile")
    git("commit", "-m", "second")
    assert why_no_commit() == ""
    assert git_state()["dirty"] is False
    Path("Snakefile").write_text("edited")
    assert git_state()["dirty"] is True


def test_a_commit_is_dirty_once_a_tracked_file_is_edited():
    git("init")
    Path("tracked").write_text("1")
    git("add", "tracked")
    git("commit", "-m", "first")
    clean = git_state()
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    Path("untracked").touch()
    assert git_state() == clean
    learner = Path("src/clpapers/runs/learners/mine.py")
    learner.parent.mkdir(parents=True)
    learner.touch()
    assert git_state() == {"commit": clean["commit"], "dirty": True}  # a build would take it
    learner.unlink()
    assert git_state() == clean
    Path("tracked").write_text("2")
    assert git_state() == {"commit": clean["commit"], "dirty": True}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        *((each, True) for each in ("results/mini/x.json", "a..b/c", "..a", "x" * 255)),
        *((each, False) for each in ("", ".", "..", "/", "../x", "results/../../x", "a//b", "./a", "a/", 3, None)),
        *((each, False) for each in ("x\nfailure: none", "\x1b[2J", "\ud800", "x/" * 3000 + "x", "x" * 256)),
    ],
)
def test_a_path_of_a_record_is_inside_the_project_normal_and_printable(text, held):
    assert is_path(text) == held
