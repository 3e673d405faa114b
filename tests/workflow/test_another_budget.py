"""A budget: every target from what is there and what fits; each build goes on where the last one stopped."""

import base64
import csv
import json
import random
import re
import time

from world import PAPER, TABLE, kill_group, processes, until

from clpapers.provenance import hardware, record_path

BARS = """\
  figure2:
    title: Figure 2
    caption: Learning.
    section: "1"
    kind: figure
    measure: learning
    render: bars
    metrics: [final_accuracy]
    names: {final_accuracy: Accuracy}
    grid: {dataset: [mnist], learner: [er]}
"""
SHOWN = TABLE.replace("csv", "md")
FIGURE = "results/mini/targets/mini/figure2.pdf"
PAGE = "results/mini/report/reproduction/mini.html"
NOTE = {"figure2.unrun.md", "figure2.record.json"}
PICTURES = {f"figure2.{end}" for end in ("pdf", "svg", "png", "caption.md", "caption.tex", "record.json")}


def build(project, hours, *targets):
    return project.build("all", *targets, "--config", f"hours={hours}")


def ended(project):
    """The runs without those whose end Snakemake did not learn of before it was killed; it makes them again."""
    begun = project.notes(".snakemake/incomplete")
    return {name: made for name, made in project.runs().items() if name not in begun}


def pictures(project):
    return {path.name for path in (project.folder / FIGURE).parent.glob("figure2.*")}


def same_bytes(project, finished):
    """Whether all that an undisturbed build makes is there; but the index names the runs that builds chose."""
    theirs = {name: content for name, content in finished.results().items() if not name.endswith("runs/index.csv")}
    ours = project.results()
    return {name: ours.get(name) for name in theirs} == theirs


def test_from_no_hour_to_all_by_small_budgets_and_a_kill(project, finished, running):
    project.edit(PAPER, "  figure1:\n", f"{BARS}  figure1:\n")
    speed = {hardware()["processor"]: {"calibration": 0.01}}  # so that predictions are the same on all machines
    project.write("results/mini/machine.json", json.dumps(speed))

    # No hour: every target is rendered, and nothing trained.
    assert "training 4 more" in project.build(TABLE, "-n", "--config", "hours=all")
    assert "training 0 more" in build(project, 0, "report")
    assert not project.runs()
    ours, theirs = project.results(), finished.results()
    made = {name for name in theirs if "/targets/" in name}
    assert made <= ours.keys()
    exact = {name: theirs[name] for name in made if "table2" in name}  # of what is not trained
    assert exact.items() <= ours.items() != {}
    assert "| ER       | –" in project.read(SHOWN)
    assert "0 of 4 runs so far (–: 2 cells)." in project.read(SHOWN)
    assert f"snakemake {TABLE} --cores" in project.read(SHOWN)
    (line,) = csv.DictReader(project.read(TABLE.replace("csv", "reported.csv")).splitlines())
    assert line["cause"] == "not run"
    assert pictures(project) == NOTE
    text = project.read(FIGURE.replace("pdf", "unrun.md"))
    assert "0 of 2 runs so far" in text
    assert f"snakemake {FIGURE} --cores" in text
    assert "figure2.svg" not in (waiting := project.read(PAGE))
    assert re.search(r"Not run yet: .*figure2.* \([\d.]+ (?:s|min) of one core\)", waiting)
    assert not [*(project.folder / "results/mini/report").rglob("figure2.svg")]
    asked = project.snakemake(FIGURE, "--cores", "1", "--config", "hours=0")
    assert f"clpapers: {FIGURE}: no job of config/ makes it; there are: figure2.unrun.md" in asked.stdout
    project.audit()
    choice = next((project.folder / "results/mini/choices").glob("*.json"))
    content = choice.read_text()
    choice.write_text(content.replace("{", "{ ", 1))  # an edit of a choice is found
    audited = project.clpapers("audit", "--scale", "mini")
    assert audited.returncode == 1
    assert f"{choice.name}: edited: its name is not the digest of its content" in audited.stdout
    choice.write_text(content)

    # Killed at a random moment of its trainings: what was finished stays, whole, and a small budget repeats none of it.
    moment = random.uniform(0, 4)  # seconds
    leader = running(project, "all", "--config", "hours=all")
    until(lambda: processes(leader, "train"), leader)
    time.sleep(moment)
    kill_group(leader)
    there = ended(project)
    assert {name: (project.folder / name).read_bytes() for name in project.runs()}.items() <= theirs.items(), moment
    build(project, 0.00008)
    assert there.items() <= project.runs().items(), moment
    there = project.runs()

    # All: the bytes of a build that knows no budget.
    build(project, "all", "report")
    assert there.items() <= project.runs().items(), moment
    assert same_bytes(project, finished), moment
    assert "runs so far" not in project.read(SHOWN)
    assert pictures(project) == PICTURES
    assert "figure2.svg" in project.read(PAGE)
    project.audit()

    # A run that is taken away by hand is trained, as the build says; one whose job outlived its build is not again.
    run = next(project.folder / name for name in project.runs() if "/er-" in name and "seed1" in name)
    run.unlink()
    record_path(run).unlink()
    assert "training 1 more" in build(project, "all")
    assert same_bytes(project, finished)
    trained = run.stat().st_mtime_ns
    for file in (run, record_path(run)):
        name = base64.urlsafe_b64encode(str(file.relative_to(project.folder)).encode()).decode()
        (project.folder / ".snakemake/incomplete" / name).write_text('{"external_jobid": null}')
    assert "training 0 more" in build(project, "all")
    assert run.stat().st_mtime_ns == trained
