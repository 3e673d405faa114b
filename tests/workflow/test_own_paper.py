"""A paper and a data set from outside, from `clpapers new` to a crate: as one's own, and nobody else's."""

import json
import re
import zipfile

import pytest
from world import refusal

SETTINGS = ("papers=[{0}/mine.yaml]", "datasets=[{0}/pets.yaml]")


@pytest.fixture(scope="module")
def away(tmp_path_factory, pristine):
    """A folder with a paper over a data set of a few images, as `clpapers new` writes them."""
    place = tmp_path_factory.mktemp("away")
    for kind, name in (("dataset", "pets"), ("paper", "mine")):
        done = pristine.clpapers("new", kind, name, "--folder", str(place))
        assert done.returncode == 0, done.stdout
    paper = (place / "mine.yaml").read_text()
    for old, new in (
        ("  mnist: {net", "  pets: {order: {tasks: 2, length: null}, net"),
        ("mnist: MNIST", "pets: Pets"),
        ("dataset: [mnist]", "dataset: [pets]"),
        ("  smoke:", "  mini:"),
        ("{mnist: {net: {hidden: [8]}}}", "{pets: {order: {length: 30}, net: {hidden: [8]}}}"),
    ):
        assert old in paper
        paper = paper.replace(old, new, 1)
    (place / "mine.yaml").write_text(paper)
    return place


def config(away):
    return ["--config", *(each.format(away) for each in SETTINGS)]


def test_from_images_in_a_folder_to_a_table_and_a_crate(project, away, tmp_path):
    paper = (away / "mine.yaml").read_text()
    (away / "private.yaml").write_text(paper.replace("paper: mine", "paper: private"))
    done = project.clpapers("summary", f"{away}/private.yaml", f"{away}/mine.yaml")  # not of data sets yet
    assert f"clpapers: {away}/private.yaml: datasets: 'pets' is not one of mnist, " in done.stdout
    project.edit("config/config.yaml", "papers:", f"datasets: [{away}/pets.yaml]\npapers:")
    project.commit()
    assert "private/table1" in project.clpapers("targets", f"{away}/private.yaml").stdout

    project.build("all", "report", *config(away))
    assert "Random guess (expected)" in project.read("results/mini/targets/mine/table1.csv")
    page = project.read("results/mini/report/reproduction/mine.html")
    assert "snakemake mine/table1 --cores" in re.sub(r"<[^>]+>", "", page)
    built = {path.name for path in (project.folder / "results/mini/targets").iterdir() if path.is_dir()}
    assert built == {"mine"}  # and no paper that is not configured

    for file, rests in (("targets/mine/table1", "papers/mine"), ("datasets/pets", "datasets/pets")):
        record = json.loads(project.read(f"results/mini/{file}.record.json"))
        assert [item["path"] for item in record["outside"]] == [f"config/outside/{rests}.yaml"]
        assert not record["data"]["pets"]["standin"]
    for path in (project.folder / "results").rglob("*.record.json"):
        assert str(away) not in path.read_text(), path  # records tell of no folder outside of the project
    assert project.clpapers("audit", "--strict").returncode == 0

    crate = tmp_path / "crate.zip"
    done = project.clpapers("export", "mine", "--out", str(crate))
    assert done.returncode == 0, done.stdout
    inside = [name for name in zipfile.ZipFile(crate).namelist() if name.startswith("config/outside/")]
    assert sorted(inside) == ["config/outside/datasets/pets.yaml", "config/outside/papers/mine.yaml"]
    assert project.clpapers("export", "--check", str(crate)).returncode == 0
    done = project.clpapers("publish", "mine", "--scale", "mini")
    assert done.returncode == 2
    assert "publish: PAPER: 'mine' is not one of" in done.stdout

    before = (away / "mine.yaml").read_text()
    (away / "mine.yaml").write_text(f"{before}# a remark\n")
    assert project.stages("all", *config(away)) == {}
    (away / "mine.yaml").write_text(before.replace("caption: >-\n      Final", "caption: >-\n      The final"))
    assert set(project.stages("all", *config(away))) == {"targets"}
    (away / "mine.yaml").write_text(before.replace("learning_rate: 0.05", "learning_rate: 0.01"))
    assert {"runs", "metrics", "targets"} <= set(project.stages("all", *config(away)))
    data = (away / "pets.yaml").read_text()
    (away / "pets.yaml").write_text(data.replace("shape: [8, 8, 1]", "shape: [8, 8, 3]"))
    assert project.stages("all", *config(away))["datasets"] == 1

    (away / "mine.yaml").write_text(before.replace("render: results_table", "render: results_tabel"))
    (away / "pets.yaml").write_text(data)
    done = project.snakemake("all", "--cores", "1", *config(away))
    assert done.returncode != 0
    said = refusal(done.stdout)
    assert said.startswith(f"{away}/mine.yaml: targets.table1.render: 'results_tabel' is not one of ")
    assert project.plan("results/mini/targets/mine/table1.csv") == []  # what was built is known, as it was then
