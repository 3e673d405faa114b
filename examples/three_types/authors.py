"""The numbers that the authors' own code gives, for three_types.csv: the commands of its runs, and their results.

The code is https://github.com/GMvandeVen/continual-learning, commit e6d795a. In its folder, with its requirements:

    python PATH/authors.py commands | xargs -P 2 -I{} sh -c '{}'     # some four core-minutes a run, 125 runs
    python PATH/authors.py collect out > PATH/three_types.csv

`commands` prints a line for each run, which writes to out/<scenario>-<strategy>-<seed>.txt. Seeds begin at 2, as in the
authors' all_results.sh. `collect` takes the runs that have ended.
"""

import argparse
import csv
import re
import statistics
import sys
from pathlib import Path

COMMIT = "GMvandeVen/continual-learning e6d795a"
SEEDS = range(2, 7)
SCENARIOS = ("class", "task", "domain")
OPTIONS = {  # in the tables' order; as compare.py sets them. A memory has 100 items of a class by default
    "none": "",
    "joint": "--joint --iters=10000",
    "ewc": "--ewc",
    "si": "--si",
    "lwf": "--lwf",
    "dgr": "--replay=generative",
    "er": "--replay=buffer",
    "agem": "--agem",
    "icarl": "--icarl",
}
NAMES = {"none": "None", "joint": "Joint", "lwf": "LwF", "agem": "A-GEM", "icarl": "iCaRL"}  # the others in capitals
METRICS = {"task": "average_accuracy", "domain": "single_head_accuracy", "class": "single_head_accuracy"}
AVERAGE = re.compile(r"=> average accuracy over all 5 contexts: ([01]\.\d{4})")


def command(scenario: str, strategy: str, seed: int | str) -> str:
    """The command of one run, in the folder of the authors' code."""
    given = f"main.py --experiment=splitMNIST --scenario={scenario} --no-save --no-gpus --seed={seed}"
    return " ".join(filter(None, [given, OPTIONS[strategy]]))


def runs() -> list[tuple[str, str]]:
    """Each scenario with each of its strategies."""
    return [(s, m) for s in SCENARIOS for m in OPTIONS if m != "icarl" or s == "class"]


def commands() -> None:
    """Print the commands of all runs that have not ended, seed by seed."""
    for seed in SEEDS:
        for scenario, strategy in runs():
            out = f"out/{scenario}-{strategy}-{seed}.txt"
            if not AVERAGE.search(Path(out).read_text() if Path(out).is_file() else ""):
                print(f"mkdir -p out && python {command(scenario, strategy, seed)} > {out}")


def collect(folder: Path) -> None:
    """Print the transcription of the runs below a folder."""
    columns = ["paper", "target", "row", "column", "metric", "value", "spread", "spread_kind", "note"]
    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    write(columns)
    for scenario, strategy in runs():
        found = {}
        for seed in SEEDS:
            file = folder / f"{scenario}-{strategy}-{seed}.txt"
            if file.is_file() and (match := AVERAGE.search(file.read_text())):
                found[seed] = round(100 * float(match[1]), 2)
        if not found:
            continue
        values, n = list(found.values()), len(found)
        spread = [f"{statistics.stdev(values) / n**0.5:.3f}", f"standard_error_{n}_runs"] if n > 1 else ["", ""]
        by_seed = ", ".join(f"{seed}: {value:.2f}" for seed, value in found.items())
        note = f"{COMMIT}; {command(scenario, strategy, 'SEED')}; by seed {by_seed}"
        name = NAMES.get(strategy, strategy.upper())
        mean = f"{statistics.mean(values):.2f}"
        write(["three_types", scenario, name, "MNIST", METRICS[scenario], mean, *spread, note])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("does", choices=["commands", "collect"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("out"))
    options = parser.parse_args()
    commands() if options.does == "commands" else collect(options.folder)
