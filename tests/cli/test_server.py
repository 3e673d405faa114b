"""The server of a build's jobs: what a job inherits, how it ends, and when it runs without the server instead."""

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


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project's folder with the code in it, of which one stage is exchanged; its environment is this process's."""
    for part in ("config", "workflow", "src"):
        shutil.copytree(ROOT / part, tmp_path / "project" / part, ignore=shutil.ignore_patterns("__pycache__"))
    stage = tmp_path / "project/src/clpapers/cli/streams.py"
    stage.write_text(textwrap.dedent(STAGE))
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "project/src"))
    for module in (server, plan):
        monkeypatch.setattr(module, "PACKAGE", tmp_path / "project/src/clpapers")
    monkeypatch.setenv(SERVER, "")
    for name in (*server.ONE_THREAD, "TMPDIR", "TMP", "TEMP"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.ONE_THREAD.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "project"


@pytest.fixture
def start(project, monkeypatch):
    """Start a server for this process's children; it is killed at the test's end."""
    begun = []

    def starts():
        with monkeypatch.context() as patch:
            patch.delenv("PYTEST_CURRENT_TEST")
            begun.append(server.start())
        return begun[-1]

    yield starts
    for each in filter(None, begun):
        each.kill()
        each.wait()


@pytest.fixture
def serving(start):
    return start()


def job(*arguments, own=(), **given):
    """Start `clpapers stream`, its output held in pipes; own: what is its own of the environment."""
    environment = os.environ | dict(own)
    del environment["PYTEST_CURRENT_TEST"]
    given |= {"env": environment}
    command = [sys.executable, "-P", "-m", "clpapers.cli", *(arguments or ("stream", "--out", OUT))]
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | given
    return subprocess.Popen(command, **given)


def told_by(process):
    """What the stage tells of a job that ends well."""
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "aside\n"), (out, err)
    return json.loads(out)


def does(what, **given):
    """A job that does something at its end."""
    return job(own={"TEMP": what}, **given)


def begun(process):
    """The process that does a job, once it tells of itself."""
    return psutil.Process(json.loads(process.stdout.readline())["drawn"][2])


def test_a_child_of_the_server_does_the_job(serving):
    told = told_by(job())
    assert told["parent"] == serving.pid
    assert told["words"] == ["clpapers", "stream", "--out", OUT]
    assert told["first"]
    assert told["interrupted"]


def test_jobs_share_nothing_of_what_they_do(serving, tmp_path):
    own = {"TMPDIR": str(tmp_path)}
    first = told_by(job(own=own, umask=0o077))
    second = told_by(job())
    assert [first["umask"], first["temporary"]] == [0o077, str(tmp_path)]
    assert own.items() <= first["environment"].items()
    assert second["umask"] != 0o077
    assert second["temporary"] != str(tmp_path)
    assert not own.keys() & second["environment"].keys()
    assert first["environment"].keys() - second["environment"].keys() == own.keys()
    assert second["first"]
    assert not set(first["drawn"]) & set(second["drawn"])


def test_it_reads_and_writes_the_files_of_its_process(serving, tmp_path):
    (tmp_path / "in").write_text("said ‘so’")
    with open(tmp_path / "in") as read:
        assert told_by(job(stdin=read, own={"TMP": "read"}))["read"] == "said ‘so’"
    with open(tmp_path / "out", "w") as written:
        assert job(stdout=written, stderr=subprocess.STDOUT).wait(120) == 0
    assert (tmp_path / "out").read_text().endswith("aside\n")


def test_it_serves_in_an_activated_environment(start, monkeypatch):
    """That exports a prompt, which the shell of a rule's command drops."""
    monkeypatch.setenv("PS1", "(.venv) ")
    server_process = start()
    command = ["bash", "-c", f"{sys.executable} -P -m clpapers.cli stream --out {OUT}"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    told = told_by(subprocess.Popen(command, env=environment, **pipes))
    assert "PS1" not in told["environment"]
    assert told["parent"] == server_process.pid


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
    for address in (os.environ[SERVER], "0"):
        process = job(own={"TEMP": what, SERVER: address})
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


def test_it_is_killed_with_its_front_and_with_the_server(serving):
    process = does("time.sleep(300)")
    child = begun(process)
    process.kill()
    child.wait(60)
    process = does("time.sleep(300)")
    child = begun(process)
    serving.kill()
    child.wait(60)
    assert process.wait(60) == -signal.SIGKILL  # as a job is that the kernel kills where memory runs out
    assert told_by(job())["parent"] != serving.pid  # and the next runs without


def test_without_a_server_where_there_is_none(start, project, monkeypatch):
    monkeypatch.setenv(SERVER, "0")
    assert start() is None
    assert told_by(job())["parent"] == os.getpid()
    monkeypatch.setenv(SERVER, str(project / "none"))
    assert told_by(job())["parent"] == os.getpid()


@pytest.mark.parametrize("other", [{"OMP_NUM_THREADS": "2"}, {"CUDA_VISIBLE_DEVICES": ""}, {"PYTHONHASHSEED": "1"}])
def test_without_it_in_another_environment(serving, other):
    assert told_by(job(own=other))["parent"] == os.getpid()
    assert told_by(job())["parent"] == serving.pid


def test_without_it_under_other_limits(serving):
    process = job(preexec_fn=lambda: os.nice(1))
    assert told_by(process)["parent"] == os.getpid()


def test_without_it_once_the_code_is_another(serving, project):
    assert told_by(job())["parent"] == serving.pid
    stage = project / "src/clpapers/cli/streams.py"
    stage.write_text(stage.read_text().replace("aside", "aside\\naside"))
    out, err = job().communicate(timeout=120)
    assert json.loads(out)["parent"] == os.getpid()
    assert err == "aside\naside\n"


def test_without_it_once_the_configuration_is_another(serving, project):
    settings = project / "config/config.yaml"
    settings.write_text(settings.read_text() + "# more\n")
    assert told_by(job())["parent"] == os.getpid()


def test_without_it_on_a_gpu_and_for_what_makes_no_file(serving):
    train = ["train", "--out", "results/smoke/runs/a/b/c/seed0.json", "--gpu-mem-mb", "0", "--gpus"]
    for words in ([*train, "1"], ["targets", "--scale", "none"]):
        process = job(*words)
        assert process.wait(120) == 2
        assert psutil.Process(serving.pid).children() == []


def test_it_imports_the_code_of_a_job_before_that(start, project):
    stage = project / "src/clpapers/cli/streams.py"
    stage.write_text(stage.read_text() + "\nIMPORTED_BY = os.getpid()\n")
    serving = start()
    told = does("print(IMPORTED_BY, file=sys.stderr)").communicate(timeout=120)[1].split()
    assert told == ["aside", str(serving.pid)]


def test_it_ends_with_the_process_that_started_it_its_jobs_done(project):
    lines = "from clpapers.cli import server", "print(server.start().pid, os.environ[server.SERVER], flush=True)"
    code = "; ".join(["import os, time", *lines, "time.sleep(300)"])
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as snakemake:
        number, address = snakemake.stdout.readline().split()
        assert Path(address).parent.stat().st_mode & 0o777 == 0o700
        process = job(own={SERVER: address, "TEMP": "time.sleep(1)"})
        assert begun(process).ppid() == int(number)
        serving = psutil.Process(int(number))
        snakemake.kill()
    assert process.wait(60) == 0
    serving.wait(60)
    assert not Path(address).parent.exists()


def test_two_builds_have_two(serving, start):
    first = os.environ[SERVER]
    other = start()
    assert os.environ[SERVER] != first
    assert told_by(job())["parent"] == other.pid
    assert told_by(job(own={SERVER: first}))["parent"] == serving.pid


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
