"""How fast streams are made, and in how much memory: `python benchmarks/bench_streams.py 100000000`."""

import argparse
import math
import resource
import time

import numpy as np
from tabulate import tabulate

from clpapers.streams import orders


def measure(items: int, classes: int, order: dict) -> tuple[float, float]:
    """Items a second, and peak bytes an item beyond the labels, of one stream of sorted int16 labels.

    The memory is the rise of the process's high-water mark: true for the first stream of a process only.
    """
    labels = np.repeat(np.arange(classes, dtype=np.int16), -(-items // classes))[:items]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    orders.make(order, labels, seed=0)
    seconds = time.perf_counter() - started
    rise = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return items / seconds, rise * 1024 / items


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("items", type=int, nargs="?", default=None)
    parser.add_argument("--quick", action="store_true", help="fewer items")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--tasks", type=float, default=5, help="as many as set mu_sigma (appendix D)")
    arguments = parser.parse_args()
    items = arguments.items or (5_000_000 if arguments.quick else 10_000_000)
    order = {"name": "stf", "mu_sigma": math.sqrt(1 / 12) / arguments.tasks}
    speed, memory = measure(items, arguments.classes, order)
    print("Streams: one stf stream; memory is the peak beyond the labels")
    row = (items, arguments.classes, items / speed, speed, memory)
    headers = ["items", "classes", "seconds", "items/s", "bytes an item"]
    print(tabulate([row], headers, floatfmt=("", "", ".2f", ".3g", ".1f")))


if __name__ == "__main__":
    main()
