"""The files that a target's metrics are computed from, and how a measure is given them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from clpapers import catalogue_metrics as catalogue
from clpapers import provenance
from clpapers.config.model import Target
from clpapers.config.paths import dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError


def inputs_of(plan: Plan, target: Target) -> tuple[list[Path], Callable[[], Iterable]]:
    """Those files, and a function that reads them for the measure."""
    if target.cells:
        return _runs(plan, target)
    if target.selections:
        read = [(factors, search.file) for factors, search in target.selections]
        return [f for _, f in read], lambda: [(factors, json.loads(f.read_text())) for factors, f in read]
    if target.streams:
        return _streams(plan, target)
    if "nets" in target.spec:
        files = [plan.net_file(target.paper, name) for name in target.spec["nets"]]
        return files, lambda: [(name, json.loads(f.read_text())) for name, f in zip(target.spec["nets"], files)]
    if "simulations" in target.spec:
        file = Path("results", plan.scale, "streams", "entropy", f"{target.paper}-{target.name}.npz")

        def ratios():
            import numpy as np

            with np.load(file, allow_pickle=False) as archive:
                return [archive["ratios"]]

        return [file], ratios
    raise ConfigError(
        f"config/papers/{target.paper}.yaml: targets.{target.name}: needs a grid, streams, nets or simulations"
    )


def _runs(plan: Plan, target: Target):
    needed = [(factors, cell, path) for factors, cell in target.cells for path in plan.results(cell, target.seeds)]
    wanted = catalogue.measures()[target.spec["measure"]].beside

    def results():
        for factors, cell, path in needed:
            content = json.loads(path.read_text())
            content["seeds"] = [
                entry | ({"test": entry["test"][cell.view]} if "test" in entry else {})
                for entry in content["seeds"]
                if entry["seed"] in target.seeds
            ]
            beside = [json.loads(file.read_text()) for file in read_beside(factors, path)]
            yield factors, cell.hash, content, *beside

    def read_beside(factors: dict, path: Path) -> list[Path]:
        files = {"record": provenance.record_path(path), "net": plan.net_file(target.paper, factors["dataset"])}
        return [files[name] for name in wanted]

    files = [file for factors, _, path in needed for file in (path, *read_beside(factors, path))]
    return list(dict.fromkeys(files)), results


def _streams(plan: Plan, target: Target):
    files = [stream_path(plan.scale, *where) for where in target.streams]
    real = dict.fromkeys(d for d, *_ in target.streams if not d.startswith("toy-"))
    sets = {d: dataset_path(plan.scale, d) for d in real}
    wanted = catalogue.measures()[target.spec["measure"]].beside

    def streams():
        import numpy as np

        from clpapers.datasets.arrays import instances, labels
        from clpapers.datasets.header import image_shape
        from clpapers.streams.chunks import class_of_output, output_labels
        from clpapers.streams.oracles import identify
        from clpapers.streams.stream import load

        def of_stream(wanted, stream, y, dataset, order, given, seed):
            match wanted:
                case "tasks":
                    classes = int(y.max()) + 1
                    shown = output_labels(order, y[stream.indices], stream.chunk, classes, seed)
                    outputs = len(class_of_output(order, classes, seed))
                    return identify(given["oracle"], order, stream, shown, y[:0], outputs, seed).train
                case "test_labels":
                    return labels(dataset, "test")
                case "image_shape":
                    return image_shape(dataset)
                case "instances":
                    if (recorded := instances(dataset)) is None:
                        raise ConfigError(
                            f"{dataset}: its images show no instances, which measure {target.spec['measure']} needs"
                        )
                    return recorded[0]

        for (name, order, seed), file, given in zip(target.streams, files, target.spec["streams"]):
            if name in sets:
                y = labels(sets[name], "train")
            else:
                y = np.repeat(np.arange(name.count("-")), [int(size) for size in name.split("-")[1:]])
            stream, factors = load(file), {"dataset": name, "order": order["name"], "seed": seed}
            beside = [of_stream(each, stream, y, sets.get(name), order, given, seed) for each in wanted]
            yield factors, vars(stream), y, *beside

    return [*files, *sets.values()], streams
