"""Measures data sets of tasks: number of tasks, size of an input, classes and images a task."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from clpapers.metrics.intervals import summarise

MEASURE = {
    "needs": ["streams"],
    "rules": {"streams": {"items": {"properties": {"dataset": {"pattern": "^(?!toy-)"}}}}},
    "beside": ["test_labels", "image_shape"],
    "rows": {"tasks": "total", "classes": "mean", "train_images": "mean", "test_images": "mean"},
}


def measure(
    target: dict, inputs: Iterable[tuple[dict, Mapping[str, np.ndarray], np.ndarray, np.ndarray, tuple[int, int, int]]]
) -> pd.DataFrame:
    """Count the classes and images of each task, over all streams of a data set (`agem`, Table 1).

    inputs: (factors with `dataset`, arrays of the stream file, labels `[N]` of the training split, of the test split,
        (H, W, C) of an image). A task is tested on the test images of its classes.

    Returns one row a data set and `row`: `tasks` of all its streams together (metric `total`), the `input` (no number),
    and `classes`, `train_images` and `test_images` of a task (metric `mean`). The columns are `dataset`, `row`,
    `metric`, `mean`, `sd`, `se`, `half_width` (95 %, over tasks; 0 for a total), `n` (tasks) and `detail`. The last
    holds tasks by stream, `3 + 17`; the input as C×H×W; or the range over tasks, where they differ.
    """
    tasks, streams, sizes = [], dict[str, list[int]](), {}
    for factors, stream, train, test, (h, w, c) in inputs:
        dataset = factors["dataset"]
        chunks = np.split(train[stream["indices"]], stream["boundaries"])
        streams.setdefault(dataset, []).append(len(chunks))
        sizes[dataset] = f"{c}×{h}×{w}"
        for labels in chunks:
            classes = np.unique(labels)
            counts = {"classes": classes.size, "train_images": labels.size, "test_images": np.isin(test, classes).sum()}
            tasks += [{"dataset": dataset, "row": row, "value": float(count)} for row, count in counts.items()]
    frame = pd.DataFrame(tasks)
    measured = summarise(frame, ["dataset", "row"]).assign(metric="mean")
    span = frame.groupby(["dataset", "row"], sort=False)["value"].agg(["min", "max"]).to_numpy()
    measured["detail"] = [f"{low:.0f}–{high:.0f}" if low < high else "" for low, high in span]
    whole = []
    for dataset, parts in streams.items():
        key = {"dataset": dataset, "metric": "total", "n": sum(parts)}
        exact = {"mean": float(sum(parts)), "sd": 0.0, "se": 0.0, "half_width": 0.0}
        whole.append(key | {"row": "tasks", **exact, "detail": " + ".join(map(str, parts)) if len(parts) > 1 else ""})
        whole.append(key | {"row": "input", "detail": sizes[dataset]})
    columns = ["dataset", "row", "metric", "mean", "sd", "se", "half_width", "n", "detail"]
    return pd.concat([pd.DataFrame(whole), measured], ignore_index=True)[columns]
