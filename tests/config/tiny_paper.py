"""A paper on toys (`tiny/`), from which tests take something away or to which they add something."""

from pathlib import Path

import yaml

from clpapers.config.layers import merge
from clpapers.config.plan import Plan
from clpapers.config.settings import check_settings

ROOT = Path(__file__).parents[2]
TINY = Path(__file__).with_name("tiny")
PAPER, PRINTED, SCALE, SETTINGS = (
    f"config/{name}" for name in ("papers/tiny.yaml", "reported/tiny.csv", "scales/tiny.yaml", "config.yaml")
)
DATASETS, WEIGHTS = "config/datasets.yaml", "config/weights.yaml"
TEXT = {name: (TINY / name).read_text() for name in (PAPER, SCALE, SETTINGS)}
COSTS, SELECTION = ((TINY / f"{name}.yaml").read_text() for name in ("costs", "selection"))
OF_GRIDS = yaml.safe_load((TINY / "grid.yaml").read_text())
ORACLES = OF_GRIDS["oracles"]
SHAPES = (TINY / "away/shapes.yaml").read_text()
MINE = TEXT[PAPER].replace("paper: tiny", "paper: mine").replace("mnist", "shapes")
MINE += "scales:\n  tiny: {defaults: {budget: {memory: 5}}}\n"
WITH_OWN = MINE.replace("  ace: {forward: separate}\n", "  ace: {method: mine.py}\n")
CELL = "targets.table1, cell dataset=mnist learner=er"
GRID, MNIST_ONLY = "learner: [er, ace]}", "grid: {dataset: [mnist], learner: [er, ace]}"
RANDOM, SPLIT = {"name": "random", "length": None}, {"name": "split", "tasks": 5, "length": None}
MIXING = [RANDOM, {"name": "offline", "items": 90, "length": None}, {"name": "dominant", "share": 0.5, "length": None}]
EVALUATED = ["sp2", "sp5", "dom", "rand"]


def edit(file, *changes):
    """Replace the first of each two texts, which must be there, by the second."""
    text = Path(file).read_text()
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, f"{file} holds no {old!r}"
        text = text.replace(old, new, 1)
    Path(file).write_text(text)


def printed(*lines):
    """Write down what the paper `tiny` prints."""
    Path(PRINTED).parent.mkdir(exist_ok=True)
    header = "paper,target,row,column,metric,value,spread,spread_kind,note"
    Path(PRINTED).write_text("".join(f"{line}\n" for line in (header, *lines)))


def plan(**options):
    return Plan("tiny", ["tiny"], **options)


def settings(**given):
    return check_settings(yaml.safe_load(TEXT[SETTINGS]) | given)


def hashes():
    return set(plan().cells)


def of_table(made=None, paper="tiny"):
    """The cells of the paper's Table 1, by data set and learner."""
    cells = (made or plan()).targets[f"{paper}/table1"].cells
    return {(levels["dataset"], levels["learner"]): cell for levels, cell in cells}


def write_grid(order, learners, defaults=(), evaluated=EVALUATED, without=(), **factors):
    """Let the paper be a grid on MNIST; its restrictions."""
    content = yaml.safe_load(TEXT[PAPER]) | OF_GRIDS
    del content["datasets"]["cifar10"]
    content["defaults"] = merge(content["defaults"] | {"order": order, "scaling": "unit"}, dict(defaults))
    content["defaults"]["evaluation"]["oracles"] = evaluated
    restrictions = [{"name": name} for name in factors.pop("restriction", ["single_head"])]
    grid = {"dataset": ["mnist"], "learner": learners, **factors, "restriction": restrictions}
    content["targets"] = {"table1": content["targets"]["table1"] | {"grid": grid, "without": list(without)}}
    Path(PAPER).write_text(yaml.safe_dump(content, sort_keys=False))
    return restrictions


def cells(*arguments, **options):
    """The cells of a grid on MNIST, by the levels of its learner and its factors in the order given."""
    restrictions, found = write_grid(*arguments, **options), {}
    for levels, cell in Plan("real", ["tiny"]).targets["tiny/table1"].cells:
        _, *rest, restriction = levels.values()
        found[(*rest, restriction["name"]) if len(restrictions) > 1 else tuple(rest)] = cell
    return found


def distinct(found):
    return len({cell.hash for cell in found.values()})
