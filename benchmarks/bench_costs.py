"""What runs cost on this machine, for `clpapers targets` to predict with: `python benchmarks/bench_costs.py`.

First the passes of every net of the plans, measured one by one; then real cells of every learner, shortened, through
`loop.train` on noise of the real shape, to which a learner's coefficients are fitted by non-negative least squares of
relative errors; last, cells that took no part in it: longer streams, more tasks, other nets and data sets. All is
processor time, but on a GPU, where it is time of the wall. What is found goes into config/costs.yaml.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime
import io
import itertools
import json
import math
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
import yaml
from scipy.optimize import nnls
from tabulate import tabulate

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.provenance import git_state, hardware, read_record, sha256, write_text
from clpapers.randomness import generator
from clpapers.report import costs, work
from clpapers.report.work import Sizes
from clpapers.runs import learners, loop, nets
from clpapers.runs.gans import GANs
from clpapers.runs.images import Images
from clpapers.runs.losses import backward, cross_entropy
from clpapers.runs.nets.stacked import stack
from clpapers.runs.optimizers import OPTIMIZERS
from clpapers.streams import orders
from clpapers.streams.stream import save

CLASSES = 100  # of a net whose number of outputs costs nothing
BATCHES = (1, 10, 32, 128, 512)
LONGEST = 0.25  # seconds: no larger batch is measured than one whose pass takes this long
MEASURED = ("passes", "forward", "auto_encoder", "edits", "gans", "generated")  # terms in seconds
# Seconds that a unit of each term may take, to choose lengths by.
ROUGH = {
    **dict.fromkeys(("steps", "asked", "offline_steps", "models"), 3e-4),
    **dict.fromkeys(("parameters", "pulled", "joined", "searched"), 1e-9),
    **dict.fromkeys(("drawn", "activations", "spilled", "answering", "answered_activations", "units"), 3e-9),
    **dict.fromkeys(("multiplied", "assessed", "answered", "distances", "herded"), 1e-10),
    **dict.fromkeys(("vae", "classifier"), 3e-10),
    **{"constraints": 1e-4, "layers": 1e-4, "scores": 1e-8, "chosen": 1e-6, "centred": 1e-9, "compared": 1e-8},
    **dict.fromkeys((*MEASURED, "fisher", "columns"), 1.0),
    **{"laterals": 0.1, "runs": 0.05},
}
FAMILY = ("vcl", "vcl_coreset", "vgr")  # they share their terms, and so coefficients
DEAREST = 12.0  # seconds of a cell that may be longer than asked for


# --- passes of nets -------------------------------------------------------------------------------------------


def clock(device: torch.device) -> float:
    """Seconds: of the processor on a CPU, of the wall with the queue drained on a GPU."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def timed(function, device: torch.device, at_least: float = 0.1) -> float:
    """The fewest seconds that a call took, after one that does not count: what others do only slows it down."""
    function()
    spent = []
    while len(spent) < 2 or (len(spent) < 50 and sum(spent) < at_least):
        started = clock(device)
        function()
        spent.append(clock(device) - started)
    return min(spent)


def passes(key: str, kinds: set[str], most: float, device: torch.device) -> dict:
    """What `clpapers.report.work.Unit` asks of one net."""
    spec, shape, outputs, seeds = work.key_parts(key)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    if kinds & {"founding", "iteration", "draw"}:
        return gan_passes(spec, shape, device)
    given = {"weights": "none"} if spec["name"] == "resnet18" else {}
    given |= {"head": "linear"} if outputs is None and spec["name"] != "cnn" else {}
    outputs = outputs or CLASSES
    net = stack(lambda: nets.build(spec | given, shape, outputs), list(range(seeds))).to(device)
    net.drop_by([torch.Generator(device).manual_seed(s) for s in range(seeds)])
    c, h, w = shape
    images = Images(rng.integers(0, 256, (64, h, w, c), dtype=np.uint8), "unit", device, torch.float32)
    parameters = list(net.parameters())
    found: dict = {"parameters": sum(p.numel() for p in parameters)}

    def learn(x_items, y):
        def once():
            for p in parameters:
                p.grad = None
            logits = net(images(x_items))
            backward(cross_entropy(logits, y))

        return once

    def answer(x_items):
        def once():
            with torch.no_grad():
                net(images(x_items)).argmax(dim=2)

        return once

    for kind in ("learn", "answer"):
        found[kind] = {}
        net.train(kind == "learn")
        for batch in BATCHES:
            x = torch.from_numpy(rng.integers(0, 64, (seeds, batch))).to(device)
            y = torch.from_numpy(rng.integers(0, outputs, (seeds, batch))).to(device)
            if kind == "learn" and batch == 1 and any(isinstance(m, torch.nn.BatchNorm1d) for m in net.modules()):
                continue
            found[kind][batch] = timed(learn(x, y) if kind == "learn" else answer(x), device)
            if found[kind][batch] > LONGEST or (batch >= 10 and batch >= most):
                break
    net.train()
    batch = 4
    x = torch.from_numpy(rng.integers(0, 64, (seeds, batch))).to(device)
    learn(x, torch.zeros(seeds, batch, dtype=torch.int64, device=device))()
    for name in kinds & set(OPTIMIZERS):
        found[name] = timed(OPTIMIZERS[name](parameters, 1e-6).step, device)
    return found


def gan_passes(spec: dict, shape: tuple, device: torch.device) -> dict:
    """Seconds of an iteration by the number of GANs, and of a drawn image."""
    c, h, w = shape
    images = Images(
        np.random.default_rng(0).integers(0, 256, (64, h, w, c), dtype=np.uint8), "unit", device, torch.float32
    )
    found: dict = {"founding": {}, "iteration": {}}
    for members in (2, 4):
        gans = GANs(spec | {"learning_rate": 2e-4}, images, [(0, str(m)) for m in range(members)])
        items = [torch.arange(64, device=device)] * members
        one, three = (timed(lambda g=gans, i=items, n=n: g.train(i, n), device) for n in (1, 3))  # each builds nets
        found["iteration"][members] = (three - one) / 2
        found["founding"][members] = max(one - found["iteration"][members], 0.0)
    found["draw"] = timed(lambda: gans.draw(10, "benchmark"), device) / 40
    return found


def needed(plans: list[Plan]) -> dict[str, tuple[set[str], float]]:
    """The nets that plans' runs pass: kinds of passes and the largest batch, by key."""
    wanted: dict[str, tuple[set[str], float]] = {}

    def unit(kind: str, key: str, items: float) -> float:
        kinds, most = wanted.get(key, (set(), 0))
        wanted[key] = kinds | {kind}, max(most, items)
        return 1.0

    for spec, sizes, seeds in distinct(plans):
        work.amounts(spec, sizes, seeds, unit)
        if seeds > 1:
            work.amounts(spec, sizes, 1, unit)
    return wanted


def distinct(plans: list[Plan]):
    """(cell, sizes, seeds of a job) of cells that differ in more than rates and strengths."""
    met = set()
    for plan in plans:
        for cell in plan.cells.values():
            seeds = len(plan.blocks(cell)[0])
            key = json.dumps([costs.bare(cell.spec), seeds], sort_keys=True)
            if key not in met:
                met.add(key)
                yield cell.spec, costs.sizes(plan, cell.spec["dataset"]), seeds


# --- real cells -----------------------------------------------------------------------------------------------


def noise(sizes: Sizes, prototypes: int = 1) -> loop.Data:
    """Noise around so many prototypes of each class, of a data set's shape."""
    rng = np.random.default_rng(0)
    features = sizes.values == sizes.shape[2]
    splits = []
    around = rng.integers(0, 256, (sizes.classes * prototypes, *sizes.shape)).astype(np.uint8)
    for count in (sizes.train, sizes.test):
        y = np.sort(np.arange(count) % sizes.classes)
        x = np.empty((count, *sizes.shape), np.uint8)
        for start in range(0, count, 1000):
            part = y[start : start + 1000] * prototypes + np.arange(start, min(start + 1000, count)) % prototypes
            x[start : start + 1000] = (around[part] // 2) + rng.integers(
                0, 128, (len(part), *sizes.shape), dtype=np.uint8
            )
        if features:
            x = x.astype(np.float32)
            x /= np.linalg.norm(x, axis=3, keepdims=True)
        splits += [x, y]
    known = rng.random((sizes.classes, sizes.attributes), dtype=np.float32) if sizes.attributes else None
    return loop.Data(*splits, sizes.classes, known)


def forked(function) -> dict:
    """What a function returns in a process of its own; nothing where that failed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            with os.fdopen(write, "w") as pipe:
                json.dump(function(), pipe)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {}


def run(spec: dict, sizes: Sizes, seeds: int, device: torch.device) -> dict:
    """Train a cell: `seconds` of `loop.train`, `bytes` of its result, `grown` as `work.Run` has it."""

    def inside() -> dict:
        torch.set_num_threads(1)
        clusters = int(work.NODES * sizes.train / sizes.classes) if spec["learner"]["name"] == "bartmap" else 1
        data = noise(sizes, max(clusters, 1))
        recorded = np.arange(sizes.train) // work.FRAMES, np.arange(sizes.train) % work.FRAMES
        streams = {s: orders.make(spec["order"], data.train_y, s, sizes.values, recorded) for s in range(seeds)}
        with contextlib.redirect_stderr(io.StringIO()):
            started = clock(device)
            results = loop.train(spec, data, streams, device)
            spent = clock(device) - started
        length = len(json.dumps({"cell": spec, "seeds": results}, separators=(",", ":")))
        told = results[0]["learner"]
        grown = told["experts"][-1][1] if "experts" in told else sum(told["nodes"]) if "nodes" in told else None
        return {"seconds": spent, "bytes": length, "grown": grown}

    return inside() if device.type == "cuda" else forked(inside)


def shortened(spec: dict, real: Sizes, tasks: int, per_class: int) -> tuple[dict, Sizes]:
    """A cell of fewer items and tasks, whose steps are as they are."""
    spec, classes = copy.deepcopy(spec), real.classes
    sizes = Sizes(
        min(per_class * classes, real.train),
        min(max(2 * classes, 200), real.test),
        classes,
        real.shape,
        real.attributes,
    )
    order, learner = spec["order"], spec["learner"]
    order["length"] = None
    for key, value in (("tasks", tasks), ("epochs", 2), ("cycles", 1), ("items", 2 * sizes.train)):
        if key in order:
            order[key] = min(order[key], value)
    if spec["evaluation"]["test"] is not None:
        spec["evaluation"]["test"] = min(spec["evaluation"]["test"], sizes.test)
    spec["evaluation"] |= {"probes": 50, "points": min(2, spec["evaluation"]["points"])}
    if "every" in spec["evaluation"]:
        spec["evaluation"]["every"] = max(sizes.train // 4, 1)
    limits = {
        "epochs": 6,
        "coreset_epochs": 4,
        "generated": 60,
        "trace": 50,
        "prediction_samples": 10,
        "sleep_vae_steps": 3 * tasks,
        "sleep_classifier_steps": 60 // tasks,
    }
    for key, value in limits.items():
        if key in learner:
            learner[key] = min(learner[key], value)
    items = sizes.train // max(order.get("tasks", 1), 1)
    if "coreset" in learner:
        learner["coreset"] = min(learner["coreset"], items // 3)
    if "gan" in learner:
        learner["gan"]["epochs"] = 1
    if "stm" in learner:
        learner["stm"] = max(sizes.train // (tasks + 1), 20)
    if "start" in learner:
        learner["start"] = min(learner["start"], sizes.train // 10)
    if learner.get("gradients"):
        learner["gradients"]["repetitions"] = 5
    return spec, sizes


def estimate(spec: dict, sizes: Sizes, seeds: int, table: dict, coefficients: dict | None = None) -> float:
    """Seconds of a cell, roughly unless coefficients are given."""
    amounts = work.amounts(spec, sizes, seeds, costs.unit(table))
    each = coefficients or ROUGH
    return sum(each[term] * amount for term, amount in amounts.items())


def lasting(spec: dict, real: Sizes, seeds: int, tasks: int, seconds: float, table: dict) -> tuple[dict, Sizes] | None:
    """A cell shortened so that it takes roughly so many seconds; None where the shortest takes too long."""
    many = real.classes < 20 or spec["order"]["name"] == "split_overlapping"  # a class may be in many tasks
    best, per_class = None, max(2, math.ceil(60 / real.classes), 2 * tasks if many else 2)
    if spec["learner"]["name"] in FAMILY:
        per_class = max(per_class, 60)
    while True:
        given = shortened(spec, real, tasks, int(per_class))
        took = estimate(*given, seeds, table)
        if best is None and took > max(3 * seconds, DEAREST):
            return None
        if best is not None and took > 1.2 * seconds:
            return best
        best = given
        if given[1].train >= real.train:
            return best
        per_class *= 1.4


def variants(plans: list[Plan]) -> dict[tuple[str, str], list]:
    """By learner, and when its exemplars are due, cells that differ in data set, net or kind of options.

    (cell, sizes, seeds) each, papers' own first.
    """
    found: dict[tuple[str, str], dict] = defaultdict(dict)
    for spec, sizes, seeds in distinct(plans):
        kinds = [spec["learner"].get(k) for k in ("fisher", "exemplars", "forward", "published", "gradients", "batch")]
        key = (
            spec["dataset"],
            json.dumps(costs.bare(spec)["net"], sort_keys=True),
            json.dumps(kinds),
            seeds,
            spec["restriction"]["train"],
        )
        kind = spec["oracle"]["name"] == "entropy"
        name = spec["learner"]["name"], spec["learner"].get("exemplars", "")
        found[name].setdefault((*key, kind, spec["oracle"]["name"] == "none"), (spec, sizes, seeds))
    return {kind: list(cells.values()) for kind, cells in found.items()}


def chosen(cells: list, table: dict, rng: np.random.Generator) -> tuple[list, list]:
    """Cells to fit to and cells to hold out, none in both; these are drawn."""
    cells = [(spec, real, seeds if work.together(spec) else 1) for spec, real, seeds in cells]  # each as the next
    nets: dict[str, list] = defaultdict(list)
    for cell in [c for c in cells if c[1].values < 100_000] or cells:
        nets[work.net_key(cell[0]["net"], cell[1].shape, 1)].append(cell)
    ranked = [cell for same in itertools.zip_longest(*nets.values()) for cell in same if cell]  # one of each net first
    fit, held = [], []
    picked = ranked[: min(5, max(len(cells) - 2, 2))]  # two are held out where there are as many
    for i, (spec, real, seeds) in enumerate(picked):
        every = spec["order"].get("tasks", 8)
        for tasks, seconds in ((2, 0.4), (every // 2, 1.2), (every, 2.5)) if i < 2 else ((4, 0.8), (7, 1.5)):
            tries = (lasting(spec, real, seeds, max(n, 2), seconds, table) for n in (tasks, tasks // 2, tasks // 4))
            given = next(filter(None, tries), None)
            fit += [(*given, seeds)] if given and (*given, seeds) not in fit else []
    others = [c for c in cells if not any(c is p for p in picked)]
    drawn = [others[i] for i in rng.permutation(len(others))[:2]]
    for spec, real, seeds in [picked[rng.integers(len(picked))], *drawn]:
        tasks = rng.integers(2, spec["order"].get("tasks", 8), endpoint=True)
        given = lasting(spec, real, seeds, int(tasks), rng.uniform(2, 6), table)
        held += [(*given, seeds)] if given else []
    return fit, [cell for cell in held if cell not in fit]


def fitted(rows: list[tuple[dict, float]]) -> dict[str, float]:
    """Non-negative coefficients of terms that make the relative errors' squares least: rows of (amounts, seconds)."""
    terms = list(dict.fromkeys(term for amounts, _ in rows for term in amounts))
    matrix = np.array([[amounts.get(term, 0.0) / seconds for term in terms] for amounts, seconds in rows])
    # Seconds of passes, measured one by one, are what they are, as surely as one cell's; nothing else is known.
    pull = [1.0 * (np.arange(len(terms)) == i) for i, term in enumerate(terms) if term in MEASURED]
    wanted = np.array([1.0] * len(rows) + [1.0] * len(pull))
    if "passes" in terms and "steps" in terms:  # in short runs, what begins once can look like what every step does
        pull.append(0.3 / 1e-3 * (np.arange(len(terms)) == terms.index("steps")))
        wanted = np.append(wanted, 0.3 / 1e-3 * ROUGH["steps"])
    system = np.vstack([matrix, *pull])
    scale = np.maximum(np.abs(system).max(axis=0), 1e-300)
    solution, _ = nnls(system / scale, wanted)
    return {term: float(f"{value / s:.4g}") for term, value, s in zip(terms, solution, scale)}


# --- the other jobs -------------------------------------------------------------------------------------------


def other_jobs() -> dict:
    """Processor seconds of a job of each stage: of the smallest, and of each byte or item more."""
    from bench_jobs import run as job

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("config", "workflow"):
            shutil.copytree(part, folder / part)
        plan = Plan("smoke", ["stf"])
        target = plan.targets["stf/figure5"]
        cell = target.cells[0][1]
        results = plan.results(cell)
        made = {}
        streams = [cell.stream(seed) for block in plan.blocks(cell) for seed in block]
        others = [(c, path) for _, c in target.cells[1:] for path in plan.results(c)]
        for stage, path in (
            ("dataset", cell.dataset),
            *(("stream", path) for path in streams),
            *(("train", path) for path in results),
            *(("stream", c.stream(s)) for c, _ in others for block in plan.blocks(c) for s in block),
            *(("train", path) for _, path in others),
            ("metrics", target.metrics),
            ("figure", target.outputs[0]),
        ):
            cost = job("-m", "clpapers.cli", stage, "--out", str(path), folder=folder).cpu
            if stage == "train":
                cost -= sum(read_record(folder / path)["training_seconds"].values())
            made.setdefault(stage, []).append(cost)
        whole = np.random.default_rng(0).integers(0, 256, 100_000_000, dtype=np.uint8)
        np.savez(folder / "bytes.npz", x=whole)

        def load() -> None:
            sha256(folder / "bytes.npz")
            with np.load(folder / "bytes.npz") as archive:
                archive["x"]

        per_byte = timed(load, torch.device("cpu"), 0.5) / whole.size

        def arranged() -> None:
            stream = orders.make({"name": "split", "tasks": 10, "length": None}, np.arange(500_000) % 10, 0)
            save(stream, folder / "stream.npz")

        per_item = timed(arranged, torch.device("cpu"), 0.5) / 500_000
    return {
        "train": {"seconds": statistics.median(made["train"]), "per_byte": per_byte},
        "datasets": {"seconds": made["dataset"][0], "per_byte": 3 * per_byte},  # read, checked, decoded, written
        "streams": {"seconds": statistics.median(made["stream"]), "per_item": per_item},
        "metrics": {"seconds": made["metrics"][0]},
        "targets": {"seconds": made["figure"][0]},
    }


# --- all of it ------------------------------------------------------------------------------------------------


def of_nets(plans: list[Plan], device: torch.device) -> dict:
    """What every net of the plans costs."""
    found = {}
    for key, (kinds, most) in needed(plans).items():
        found[key] = passes(key, kinds, most, device)
        print(f"measured {key}", file=sys.stderr, flush=True)
    return found


def of_cells(plans: list[Plan], nets: dict, device: torch.device, only: list[str], draw: int):
    """Yield the cells of one learner after the other, run for real.

    Each is `learner`, `held` or not, `spec`, `sizes`, `seeds`, and what `run` says. draw: which cells are held out.
    """
    for name in work.LEARNERS:
        learners.find(name)  # imported once, before processes part
    for (name, _), cells in sorted(variants(plans).items()):
        if only and name not in only:
            continue
        rows = []
        for held, group in enumerate(chosen(cells, nets, generator(draw, f"held out {name}"))):
            for spec, sizes, seeds in group:
                row = {"learner": name, "held": bool(held), "spec": spec, "sizes": sizes, "seeds": seeds}
                result = run(spec, sizes, seeds, device)
                if result:
                    rows.append(row | result | {"spec": spec | {"grown": result["grown"]}})
                said = f"{result['seconds']:.1f} s" if result else "failed, see above"
                print(f"{name} on {spec['dataset']}: {said}", file=sys.stderr, flush=True)
        yield rows


def model(rows: list[dict], nets: dict) -> tuple[dict, dict]:
    """Coefficients of each learner's terms, and of the terms of a result's bytes, by the rows that are not held out."""
    unit = costs.unit(nets)
    of_learner: dict[str, list] = defaultdict(list)
    lengths = []
    for row in rows:
        if not row["held"]:
            amounts = work.amounts(row["spec"], row["sizes"], row["seeds"], unit)
            together = FAMILY if row["learner"] in FAMILY else (row["learner"],)
            for name in together:
                of_learner[name].append((amounts, row["seconds"]))
            terms = work.result_bytes(row["spec"], row["sizes"])
            lengths.append(({"job": 1.0} | {k: row["seeds"] * v for k, v in terms.items()}, row["bytes"]))
    return {name: fitted(mine) for name, mine in of_learner.items()}, fitted(lengths) if lengths else {}


def compared(rows: list[dict], nets: dict, coefficients: dict) -> list[tuple]:
    """(cell, predicted, measured, their ratio) of the cells held out."""
    lines = []
    for row in rows:
        if row["held"] and row["learner"] in coefficients:
            said = estimate(row["spec"], row["sizes"], row["seeds"], nets, coefficients[row["learner"]])
            tasks = row["spec"]["order"].get("tasks", "")
            net = row["spec"]["net"].get("width", row["spec"]["net"].get("hidden"))
            at = row["sizes"]
            cell = (
                f"{row['learner']} {row['spec']['dataset']} net {net} {tasks} tasks, {at.train} items × {row['seeds']}"
            )
            lines.append((cell, said, row["seconds"], said / row["seconds"]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--scales", nargs="+", default=["paper", "laptop"], help="whose nets and cells")
    parser.add_argument("--learners", nargs="+", choices=work.LEARNERS, default=[], help="only these anew")
    parser.add_argument("--quick", action="store_true", help="take nets and jobs as the file has them")
    parser.add_argument("--draw", type=int, default=0, help="which cells are held out; another number, others")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.set_num_threads(1)
    plans = [Plan(scale, all_papers(), cuda=device.type == "cuda") for scale in options.scales]
    known = costs.read()
    before = known.get(options.device, {})
    fresh = not (options.quick or options.learners)
    sittings = [*before.get("measured", []), provenance(device)]
    entry = {"measured": sittings} | {k: before.get(k, {}) for k in ("learners", "bytes", "jobs", "nets")}
    known[options.device] = entry
    if fresh:
        entry["nets"] = rounded(of_nets(plans, device))
        entry["jobs"] = rounded(other_jobs())
        write(known)
    rows = []
    for more in of_cells(plans, entry["nets"], device, options.learners, options.draw):
        rows += more
        entry["learners"] |= model(more, entry["nets"])[0]
        write(known)  # so that little is lost where this is cut off
    coefficients, lengths = model(rows, entry["nets"])
    entry["learners"] |= coefficients
    if not options.learners:
        entry["bytes"] = lengths
    if fresh:  # of sittings before this one nothing is left
        entry |= {"measured": sittings[-1:], "learners": coefficients}
    write(known)
    lines = compared(rows, entry["nets"], coefficients)
    print(tabulate(lines, ["held out", "predicted s", "measured s", "ratio"], floatfmt=("", ".2f", ".2f", ".2f")))
    within = sum(0.75 <= ratio <= 1.25 for *_, ratio in lines)
    print(f"{within} of {len(lines)} within 25 %")


HEADER = """\
# What passes, steps and jobs cost, in seconds of the processor (cuda: of the wall), and bytes of results. Written by
# benchmarks/bench_costs.py; not meant to be edited. `clpapers targets` predicts with it.
"""


def write(known: dict) -> None:
    """What is known so far."""
    write_text(costs.FILE, HEADER + yaml.safe_dump(known, sort_keys=False, width=118))


def provenance(device: torch.device) -> dict:
    """Where and how it was measured."""
    machine = hardware()
    return {
        "machine": torch.cuda.get_device_name(device) if device.type == "cuda" else f"{machine['processor']}, one core",
        "system": machine["system"],
        "date": datetime.date.today().isoformat(),
        "torch": str(torch.__version__),
        "commit": git_state()["commit"],
        "command": shlex.join(["python", *sys.argv]),
    }


def rounded(content):
    """The same with numbers of four digits."""
    if isinstance(content, dict):
        return {str(key): rounded(value) for key, value in content.items()}
    return float(f"{content:.4g}") if isinstance(content, float) else content


if __name__ == "__main__":
    main()
