"""A budget: every target from what is there and what fits; each build goes on where the last one stopped."""

import base64
import csv
import json
import random
import re
import time

from project import kill_group, processes, until

from clpapers.provenance import hardware

RUNS = "results/mini/runs/mnist"


def trained(project):
    """The result files of runs, with their times of modification."""
    files = (project.folder / RUNS).rglob("seed*.json")
    return {path: path.stat().st_mtime_ns for path in files if not path.name.endswith(".record.json")}


def ended(project):
    """`trained` without the runs whose end Snakemake did not learn of before it was killed; it makes them again."""
    top = project.folder / ".snakemake/incomplete"
    parts = [file.relative_to(top).parts for file in top.rglob("*") if file.is_file()]
    names = [base64.urlsafe_b64decode("".join(part.removeprefix("@") for part in each)).decode() for each in parts]
    at_work = {project.folder / name for name in names}
    return {path: made for path, made in trained(project).items() if path not in at_work}


def build(project, hours, *arguments):
    done = project.snakemake("all", "--cores", "2", "--config", f"hours={hours}", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def shown(project):
    return (project.folder / "results/mini/targets/mini/table1.md").read_text(encoding="utf-8")


def compared(project):
    with (project.folder / "results/mini/targets/mini/table1.reported.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    return line


def test_without_hours_every_target_is_rendered_and_nothing_trained(project, finished):
    said = build(project, 0)
    assert "training 0 more" in said
    assert not trained(project)
    ours, theirs = project.results(), finished.results()
    made = {name for name in theirs if "/targets/" in name}
    assert made <= ours.keys()
    exact = [name for name in made if "table2" in name]  # of what is not trained
    assert exact
    assert all(ours[name] == theirs[name] for name in exact)
    assert "| ER       | –" in shown(project)
    assert "0 of 4 runs so far (–: 2 cells)." in shown(project)
    assert "snakemake results/mini/targets/mini/table1.csv --cores" in shown(project)
    assert compared(project)["cause"] == "not run"
    audited = project.clpapers("audit", "--scale", "mini")
    assert audited.returncode == 0, audited.stdout
    (file,) = (project.folder / "results/mini/choices").glob("*.json")
    file.write_text(file.read_text().replace("{", "{ ", 1))  # an edit of the choice is found
    audited = project.clpapers("audit", "--scale", "mini")
    assert audited.returncode == 1
    assert "its name is not the digest of its content" in audited.stdout


def steady(project):
    """Have a project's costs predicted for a machine of one speed, whatever else this one does."""
    folder = project.folder / "results/mini"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({hardware()["processor"]: {"calibration": 0.01}}))


def bytes_of(project):
    """All results but the index, whose lines name the runs that builds chose."""
    return {name: content for name, content in project.results().items() if not name.endswith("runs/index.csv")}


def test_each_build_adds_and_none_repeats_until_all_is_there(project, finished):
    """The same small budget twice; then with hours=all it comes to the bytes of a build that knows no budget."""
    steady(project)
    before = {}
    for _ in range(2):
        build(project, 0.015)
        now = trained(project)
        assert before.items() <= now.items()  # nothing is trained again
        assert len(now) > len(before) or len(now) == 3  # more decide nothing: of ACE no number is printed
        before = now
    build(project, "all")
    assert before.items() <= trained(project).items()
    theirs = bytes_of(finished)
    assert {name: content for name, content in project.results().items() if name in theirs} == theirs
    assert project.clpapers("audit", "--scale", "mini").returncode == 0


def test_killed_at_a_random_moment_and_continued_nothing_is_lost(project, finished, running):
    """SIGKILL for all of a build that has a budget: what was finished stays, and the bytes are of one undisturbed."""
    steady(project)
    moment = random.uniform(0, 4)  # seconds into the trainings
    leader = running(project, "all", "--config", "hours=0.06")
    until(lambda: processes(leader, "train"), leader)
    time.sleep(moment)
    kill_group(leader)
    there = ended(project)
    theirs = bytes_of(finished)
    runs = {name: content for name, content in project.results().items() if name.startswith(RUNS)}
    assert runs.items() <= theirs.items(), moment  # whole, or not there
    build(project, 0.06)
    assert there.items() <= trained(project).items(), moment  # none is trained again
    build(project, "all")
    assert there.items() <= trained(project).items(), moment
    assert {name: content for name, content in project.results().items() if name in theirs} == theirs, moment
    assert project.clpapers("audit", "--scale", "mini").returncode == 0


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


def test_a_figure_without_a_run_is_a_note_instead_of_pictures_and_comes_with_its_runs(project):
    paper = project.folder / "config/papers/mini.yaml"
    paper.write_text(paper.read_text(encoding="utf-8") + BARS, encoding="utf-8")
    figure, note = (
        {f"figure2.{end}" for end in ("pdf", "svg", "png", "caption.md", "caption.tex")},
        {"figure2.unrun.md"},
    )

    def there():
        return {path.name for path in (project.folder / "results/mini/targets/mini").glob("figure2.*")}

    def page():
        built = project.snakemake("report", "--cores", "2", "--config", "hours=0")
        assert built.returncode == 0, built.stdout
        return (project.folder / "results/mini/report/reproduction/mini.html").read_text(encoding="utf-8")

    build(project, 0)
    assert there() == note | {"figure2.record.json"}
    text = (project.folder / "results/mini/targets/mini/figure2.unrun.md").read_text(encoding="utf-8")
    assert "0 of 2 runs so far" in text
    assert "snakemake results/mini/targets/mini/figure2.pdf --cores" in text
    assert "figure2.svg" not in (waiting := page())
    assert re.search(r"Not run yet: .*figure2.* \(1 min of one core\)", waiting)
    assert not [*(project.folder / "results/mini/report").rglob("figure2.svg")]
    assert project.clpapers("audit", "--scale", "mini").returncode == 0
    assert (
        "figure2.unrun.md"
        in project.snakemake("results/mini/targets/mini/figure2.pdf", "-c1", "--config", "hours=0").stdout
    )
    build(project, "all")
    assert there() == figure | {"figure2.record.json"}
    assert "figure2.svg" in page()
    assert project.clpapers("audit", "--scale", "mini").returncode == 0


def test_a_target_by_name_keeps_to_the_hours_that_are_asked_for_and_says_first_what_it_trains(project):
    asked = ("results/mini/targets/mini/table1.csv", "--cores", "2")
    done = project.snakemake(*asked, "--config", "hours=0")
    assert done.returncode == 0, done.stdout
    assert "training 0 more" in done.stdout
    assert not trained(project)
    assert "0 of 4 runs so far" in shown(project)
    done = project.snakemake(*asked, "--config", "hours=all")
    assert done.returncode == 0, done.stdout
    assert "training 4 more" in done.stdout
    assert len(trained(project)) == 4
    assert "runs so far" not in shown(project)
