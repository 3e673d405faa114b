"""The server of a build's jobs: what a job inherits, how it ends, and when it runs without the server instead."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from clpapers.cli import SERVER, server
from clpapers.config import plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# In place of a stage: tells all that a job inherits, then does as $DOES says.
STAGE = """
    import json, os, random, signal, sys, tempfile, time
    import numpy

    def stream(task):
        told = {
            "parent": os.getppid(),
            "folder": os.getcwd(),
            "umask": os.umask(0),
            "temporary": tempfile.gettempdir(),
            "environment": dict(os.environ),
            "words": sys.argv,
            "drawn": [random.random(), numpy.random.rand(), os.getpid()],
            "first": "done" not in globals(),
            "interrupted": signal.getsignal(signal.SIGINT) == signal.default_int_handler,
            "read": sys.stdin.read() if os.environ.get("TMP") == "read" else "",
        }
        globals()["done"] = True
        print(json.dumps(told), flush=True)
        print("aside", file=sys.stderr)
        exec(os.environ.get("TEMP", "pass"))
"""
OUT = "results/smoke/streams/toy-13-17-10/stf-0.15/seed0.npz"
OTHER_ENVIRONMENTS = {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "1"}


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """A project's folder with the code in it, of which one stage is exchanged; its environment is this process's."""
    folder = tmp_path_factory.mktemp("served") / "project"
    for part in ("config", "workflow", "src"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "src/clpapers/cli/streams.py").write_text(textwrap.dedent(STAGE))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", str(folder / "src"))
        patch.setattr(plan, "PACKAGE", folder / "src/clpapers")
        for name in ("TMPDIR", "TMP", "TEMP"):
            patch.delenv(name, raising=False)
        for name, value in server.ONE_THREAD.items():
            patch.setenv(name, value)
        yield folder


@contextlib.contextmanager
def started():
    """A server for this process's children, killed at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SERVER, os.environ.get(SERVER, ""))
        with patch.context() as own:
            own.delenv("PYTEST_CURRENT_TEST")
            begun = server.start()
        try:
            yield begun
        finally:
            begun.kill()
            begun.wait()


@pytest.fixture(scope="module")
def serving(project):
    with started() as begun:
        yield begun


@pytest.fixture
def edited(project):
    """Adds to a file of the project until the test's end; times are as before then."""
    before = {}

    def add(name, text):
        file = project / name
        before[file] = file.read_text(), file.stat().st_mtime_ns
        file.write_text(before[file][0] + text)

    yield add
    for file, (text, made) in before.items():
        file.write_text(text)
        os.utime(file, ns=(made, made))


def job(*arguments, own=(), command=(), **given):
    """Start `clpapers stream`, its output held in pipes; own: what is its own of the environment."""
    environment = os.environ | dict(own)
    environment.pop("PYTEST_CURRENT_TEST", None)
    command = command or [sys.executable, "-P", "-m", "clpapers.cli", *(arguments or ("stream", "--out", OUT))]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes | given)


def told_by(process):
    """The words of the stage of a job that ends well."""
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "aside\n"), (out, err)
    return json.loads(out)


def does(what, **given):
    """A job that does something at its end."""
    return job(own={"TEMP": what}, **given)


def begun(process):
    """The process that does a job, once it tells of itself."""
    return psutil.Process(json.loads(process.stdout.readline())["drawn"][2])


def test_children_of_the_server_do_the_jobs_and_share_nothing_of_what_they_do(serving, tmp_path):
    own = {"TMPDIR": str(tmp_path)}
    first, second = told_by(job(own=own, umask=0o077)), told_by(job())
    for told in (first, second):
        assert told["parent"] == serving.pid
        assert told["words"] == ["clpapers", "stream", "--out", OUT]
        assert told["first"]
        assert told["interrupted"]
    assert [first["umask"], first["temporary"]] == [0o077, str(tmp_path)]
    assert own.items() <= first["environment"].items()
    assert second["umask"] != 0o077
    assert second["temporary"] != str(tmp_path)
    assert not own.keys() & second["environment"].keys()
    assert first["environment"].keys() - second["environment"].keys() == own.keys()
    assert not set(first["drawn"]) & set(second["drawn"])


def test_it_reads_and_writes_the_files_of_its_process(serving, tmp_path):
    (tmp_path / "in").write_text("said ‘so’")
    with open(tmp_path / "in") as read:
        assert told_by(job(stdin=read, own={"TMP": "read"}))["read"] == "said ‘so’"
    with open(tmp_path / "out", "w") as written:
        assert job(stdout=written, stderr=subprocess.STDOUT).wait(120) == 0
    assert (tmp_path / "out").read_text().endswith("aside\n")


def test_it_serves_in_an_activated_environment(monkeypatch):
    """That exports a prompt, which the shell of a rule's command drops."""
    monkeypatch.setenv("PS1", "(.venv) ")
    with started() as begun:
        told = told_by(job(command=["bash", "-c", f"{sys.executable} -P -m clpapers.cli stream --out {OUT}"]))
        assert "PS1" not in told["environment"]
        assert told["parent"] == begun.pid


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no more')", 1, "no more\n"),
        ("raise ValueError('of the stage')", 1, "ValueError: of the stage\n"),
        ("raise SystemExit", 0, ""),
        ("import atexit; atexit.register(print, 'at the end', file=sys.stderr)", 0, "at the end\n"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt\n"),
        ("raise clpapers.cli.job_context.Refusal('a line')", 1, "NameError: name 'clpapers' is not defined\n"),
        ("from clpapers.cli.job_context import Refusal; raise Refusal('a line')", 2, "clpapers: a line\n"),
    ],
)
def test_it_ends_as_without_a_server(serving, what, status, said):
    process = does(what)
    _, err = process.communicate(timeout=120)
    assert process.returncode == status
    assert err.endswith(said)


def test_signals_reach_it(serving):
    for number in (signal.SIGTERM, signal.SIGINT):
        process = does("time.sleep(300)")
        child = begun(process)
        assert child.ppid() == serving.pid
        process.send_signal(number)
        assert process.wait(60) == -number
        assert psutil.wait_procs([child], 60)[1] == []


def test_it_is_killed_with_its_front_and_with_the_server():
    with started() as begun_server:
        process = does("time.sleep(300)")
        child = begun(process)
        process.kill()
        child.wait(60)
        process = does("time.sleep(300)")
        child = begun(process)
        begun_server.kill()
        child.wait(60)
        assert process.wait(60) == -signal.SIGKILL  # as a job is that the kernel kills where memory runs out
        assert told_by(job())["parent"] == os.getpid()  # and the next runs without


def test_without_a_server_where_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv(SERVER, "0")
    assert server.start() is None
    for address in ("0", str(tmp_path / "none")):
        assert told_by(job(own={SERVER: address}))["parent"] == os.getpid()


@pytest.mark.parametrize(
    "other",
    [
        *({"own": {name: value}} for name, value in OTHER_ENVIRONMENTS.items()),
        {"preexec_fn": lambda: os.nice(1)},
    ],
    ids=[*OTHER_ENVIRONMENTS, "priority"],
)
def test_without_it_in_another_environment_or_under_other_limits(serving, other):
    assert told_by(job(**other))["parent"] == os.getpid()


@pytest.mark.parametrize("file", ["src/clpapers/randomness.py", "config/config.yaml"])
def test_without_it_once_the_code_or_the_configuration_is_another(serving, edited, file):
    edited(file, "# more\n")
    assert told_by(job())["parent"] == os.getpid()


def test_without_it_on_a_gpu_and_for_what_makes_no_file(serving):
    train = ["train", "--out", "results/smoke/runs/a/b/c/seed0.json", "--gpu-mem-mb", "0", "--gpus"]
    for words in ([*train, "1"], ["targets", "--scale", "none"]):
        process = job(*words)
        assert process.wait(120) == 2
        assert psutil.Process(serving.pid).children() == []


def test_it_imports_the_code_of_a_job_before_that(edited):
    edited("src/clpapers/cli/streams.py", "\nIMPORTED_BY = os.getpid()\n")
    with started() as begun_server:
        told = does("print(IMPORTED_BY, file=sys.stderr)").communicate(timeout=120)[1].split()
        assert told == ["aside", str(begun_server.pid)]


def test_it_ends_with_the_process_that_started_it_its_jobs_done():
    lines = "from clpapers.cli import server", "print(server.start().pid, os.environ[server.SERVER], flush=True)"
    code = "; ".join(["import os, time", *lines, "time.sleep(300)"])
    with job(command=[sys.executable, "-P", "-c", code]) as snakemake:
        number, address = snakemake.stdout.readline().split()
        assert Path(address).parent.stat().st_mode & 0o777 == 0o700
        process = job(own={SERVER: address, "TEMP": "time.sleep(1)"})
        assert begun(process).ppid() == int(number)
        serving = psutil.Process(int(number))
        snakemake.kill()
    assert process.wait(60) == 0
    serving.wait(60)
    assert not Path(address).parent.exists()


def test_what_is_no_request_disturbs_nothing(serving):
    for message in (b"", b"x", bytes(8), b"\xff" * 8, (5).to_bytes(8, "big") + b"a"):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(os.environ[SERVER])
            link.sendall(message)
    assert told_by(job())["parent"] == serving.pid


def test_the_front_imports_nothing_slow():
    listed = "import sys; import clpapers.cli, clpapers.cli.server_client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True).stdout.split()
    assert not {"argparse", "importlib.metadata", "pathlib", "numpy", "yaml", "json"} & set(loaded)
    assert {each for each in loaded if each.startswith("clpapers")} == {
        "clpapers",
        "clpapers.cli",
        "clpapers.cli.server_client",
    }
