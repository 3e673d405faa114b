"""Hours: fewer than the cheapest run takes, and a training that was killed and goes on."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

SECONDS = 1  # between two savings of a training, instead of five minutes


@pytest.fixture(scope="module")
def user(copied, installed, tmp_path_factory):
    home = tmp_path_factory.mktemp("hours")
    project = copied(home / "clpapers")
    file = project / "src/clpapers/runs/checkpoint.py"
    file.write_text(file.read_text().replace("INTERVAL = 300 ", f"INTERVAL = {SECONDS} "))
    return installed(project, home)


def test_hours_that_are_too_few_say_how_many_train_the_cheapest_run(user):
    """In `next` and in a build alike; and with so many hours, a run is planned."""
    said = user.ok("clpapers next desiderata --hours 0.001")
    (hours,) = re.findall(r"hours=([\d.]+) trains it", said)
    built = user.run("snakemake desiderata --cores --config hours=0.001")
    assert built.code == 0, built.err
    assert f"hours={hours} trains it" in built.err
    assert "training 0 more" in built.err
    assert "training 1 more" in user.ok(f"clpapers next desiderata --hours {hours}")


def test_a_training_that_was_killed_is_announced_priced_and_counted_by_what_remains(user):
    """A run of half a minute: killed after its first saving, planned, and gone on with."""
    (published,) = (user.folder / "results/paper/imported").glob("mnist/permuted_pixels-5/single-*")
    run = Path("results/paper/runs", *published.parts[-3:], "seed1.json")
    kept = user.folder / run.with_name(".seed1.checkpoint")
    command = f"snakemake {run} --cores 1"
    whole = seconds_of(user.run(f"{command} -n").err)
    building = subprocess.Popen(
        [user.environment / "bin/snakemake", run, "--cores", "1"],
        cwd=user.folder,
        env=os.environ | {"HOME": str(user.home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not kept.is_file():
            assert building.poll() is None, "it ended before it saved"
            time.sleep(0.1)
    finally:
        if building.poll() is None:
            os.killpg(building.pid, signal.SIGKILL)
        building.wait()
    planned = user.run(f"{command} -n").err
    (share,) = re.findall(rf"{run} goes on at (\d+) %", planned)
    assert seconds_of(planned) == pytest.approx(whole * (1 - int(share) / 100), abs=1 + 0.02 * whole)
    done = user.run(command)
    assert done.code == 0, done.err
    assert f"{run} goes on at " in done.err
    record = json.loads((user.folder / run.with_name("seed1.record.json")).read_text())
    assert [each["seeds"] for each in record["resumed"]] == [[1]]
    assert "goes on" not in user.run(f"{command} -n").err


def seconds_of(said: str) -> float:
    """The predicted seconds of a build, by its announcement."""
    number, unit = re.findall(r"predicted ([\d.]+) (s|min) of one core", said)[0]
    return float(number) * {"s": 1, "min": 60}[unit]
