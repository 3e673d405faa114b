"""Claims through Snakemake: tables of verdicts beside the targets, made anew by what they hang on, nothing else."""

import csv
import json

from world import PAPER, refusal

CLAIMS = """\
mini:
  better:
    section: "1"
    statement: "ACE is better than ER"
    target: table1
    metric: final_accuracy
    test: above
    where: {dataset: mnist}
    of: {learner: ace}
    than: {learner: er}
"""
OTHERS = CLAIMS.replace("mini:", "maxi:").replace("better:", "another:")
FILE = "config/claims.yaml"
RENDERED = ["results/mini/targets/mini/claims.csv", "results/mini/targets/scorecard.csv"]
EDITS = [
    (FILE, "test: above", "test: below", RENDERED),
    (FILE, "another:", "renamed:", []),  # of a paper that is not configured
    ("src/clpapers/evidence/verdicts.py", "ONE_SIDED = ", "EDITED = ONE_SIDED = ", RENDERED),
]


def test_claims_are_decided_counted_traced_and_audited(built):
    built.write("config/papers/maxi.yaml", built.read(PAPER).replace("paper: mini", "paper: maxi"))
    built.write(FILE, CLAIMS + OTHERS)
    assert sorted(built.plan()) == ["results/mini/runs/index.csv", *RENDERED]  # the index has the other's cells, too
    built.commit()
    built.build()
    folder = built.folder / "results/mini/targets"
    for stem in ("mini/claims", "scorecard"):
        assert all((folder / f"{stem}.{ending}").is_file() for ending in ("csv", "md", "tex", "html"))
    assert not (folder / "maxi").exists()
    (line,) = csv.DictReader(built.read(RENDERED[0]).splitlines())
    assert (line["claim"], line["target"], line["verdict"]) == ("better", "mini/table1", "not comparable")
    assert (line["reason"], line["effect"], line["ci_low"]) == ("stand-in data: mnist", "0", "")  # of equal values
    (counts,) = csv.DictReader(built.read(RENDERED[1]).splitlines())
    assert (counts["paper"], counts["claims"], counts["not comparable"]) == ("mini", "1", "1")

    record = json.loads(built.read(RENDERED[0].replace("csv", "record.json")))
    assert [entry["path"] for entry in record["inputs"]] == ["results/mini/metrics/mini/table1.csv"]
    assert record["claims"]["better"]["statement"] == "ACE is better than ER"
    assert record["data"]["mnist"]["standin"]
    assert "/metrics/mini/table1.csv" in built.clpapers("lineage", RENDERED[1]).stdout

    for file, old, new, rendered in EDITS:
        built.edit(file, old, new)
        assert sorted(built.plan()) == rendered, file
        built.edit(file, new, old)
    assert built.clpapers("audit").returncode == 0
    built.edit(FILE, "test: above", "test: below")
    done = built.clpapers("audit")
    assert done.returncode == 1
    assert done.stdout.startswith(f"failure: {RENDERED[0]}: made with other settings")

    built.write(FILE, CLAIMS.replace("learner: ace", "learner: ice"))
    done = built.snakemake("-n")
    assert done.returncode == 1
    assert refusal(done.stdout) == f"{FILE}: mini.better.of.learner: 'ice' is not one of er, ace"
    asked = built.clpapers("claims", "--out", "results/mini/targets/maxi/claims.csv")
    assert (asked.returncode, asked.stdout.count("\n")) == (2, 1)
