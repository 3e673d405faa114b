"""Random forgeries of checkpoints, well-formed and with the right digest: refused in one line, or to no other result.

A forgery that only has other values where values move, another weight or a counter, cannot be told from a training's
own (docs/audit.md); it must end in a result or a line all the same.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import io
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable

from made import TESTS, Tally, run

sys.path.insert(0, str(TESTS / "runs"))

from test_checkpoint import FILE, IDENTITY, RESULT, chunks, interrupted, spec_of
from tiny import CPU, VARIANTS, problem

from clpapers.provenance import spent
from clpapers.runs import checkpoint, fit, loop
from clpapers.runs.checkpoint import DIGEST, DTYPES, KINDS, Checkpoint, CheckpointError

ODD = (None, True, 0, -1, 2**70, 1e400, -0.5, float("nan"), "", "x" * 5000, "\0", [], [0], [10**6], {}, {"": None})
TRIES = 20  # of one checkpoint
FORM = {
    "shape",
    "dtype",
    "dimensions",
    "frozen",
    "parameter",
    "device",
    "class",
    "attribute",
    "kind",
    "header",
    "sizes",
}


def forged(draw: random.Random, header: dict, state: dict) -> tuple[str, int]:
    """Forge header or state; in a word what was done to it, and the number of the node, -1 for none."""
    if draw.random() < 0.15:
        return "header" if odd(draw, {key: header[key] for key in header if key != "finished"}) else "", -1
    if draw.random() < 0.05 and (sizes := state["sizes"]):
        sizes[draw.randrange(len(sizes))] += draw.choice((-1, 1, 8, -8, 10**12))
        return "sizes", -1
    number = draw.randrange(len(state["nodes"]))
    return of_node(draw, state["nodes"][number], state), number


def of_node(draw: random.Random, node: list, state: dict) -> str:
    kind = node[0]
    if draw.random() < 0.05:
        node[0] = draw.choice([each for each in KINDS if each != kind])
        return "kind"
    if kind == "tensor":
        return of_tensor(draw, node, len(state["sizes"]))
    if kind == "array":
        part = draw.choice(("dtype", "shape", "dimensions"))
        if part == "dtype":
            node[1] = draw.choice(
                [each for each in ("<f4", "<f8", "<i8", "<i4", "|b1", "|O", "<U2") if each != node[1]]
            )
        elif part == "shape" and node[2]:
            node[2][draw.randrange(len(node[2]))] += draw.choice((-1, 1))
        else:
            node[2] = [1, *node[2]]
        return part
    if kind in ("list", "tuple", "set", "Size") and node[1]:
        return items(draw, node[1], len(state["nodes"]))
    if kind == "object" and node[2]:
        name = draw.choice(list(node[2]))
        if draw.random() < 0.5:
            return attribute(draw, node[2], name)
        node[2][name] = other(draw, node[2][name], len(state["nodes"]))
        return "value"
    if kind == "object":
        node[1] = draw.choice(list(checkpoint._classes()))
        return "class"
    label = "item" if kind == "list" else "kind"  # an empty one, which may gain items
    return label if odd(draw, node) else ""


def of_tensor(draw: random.Random, node: list, blocks: int) -> str:
    part = draw.choice(("shape", "dtype", "dimensions", "frozen", "parameter", "device", "memory", "offset", "stride"))
    if part == "shape" and node[5]:
        at = draw.randrange(len(node[5]))
        node[5][at] += draw.choice((-1, 1)) if node[5][at] else 1
    elif part == "dtype":
        node[3] = draw.choice([each for each in DTYPES if each != node[3]])
    elif part == "dimensions":
        node[5], node[6] = [1, *node[5]], [1, *node[6]]
    elif part in ("frozen", "parameter"):
        at = 8 if part == "frozen" else 7
        node[at] = not node[at]
    elif part == "device":
        node[2] = draw.choice(("cuda", "meta", "cuda:99", "", "x"))
    elif part == "memory":
        node[1] = draw.randrange(-1, blocks + 1)
    elif part == "offset":
        node[4] += draw.choice((-1, 1, 10**12))
    elif node[6]:
        node[6][draw.randrange(len(node[6]))] = draw.choice((0, -1, 2))
    return part


def items(draw: random.Random, held: list, nodes: int) -> str:
    at = draw.randrange(len(held))
    if draw.random() < 0.3:
        del held[at]
    elif draw.random() < 0.3:
        held.append(held[at])
    else:
        held[at] = other(draw, held[at], nodes)
    return "item"


def attribute(draw: random.Random, held: dict, name: str) -> str:
    if draw.random() < 0.4:
        del held[name]
    elif draw.random() < 0.5:
        held[f"{name}_"] = held.pop(name)
    else:
        held[draw.choice(("observe", "step", "stackable", "passing", "moves", "policy", "__class__", "forward"))] = (
            held[name]
        )
    return "attribute"


def other(draw: random.Random, value: object, nodes: int) -> object:
    if isinstance(value, list) and draw.random() < 0.7:
        return [draw.randrange(nodes)]
    if type(value) is int and draw.random() < 0.7:
        return value + draw.choice((-1, 1, 10**6))
    if type(value) is float and draw.random() < 0.7:
        return value * draw.choice((2, -1, 1e300))
    return draw.choice(ODD)


def odd(draw: random.Random, content: dict | list) -> bool:
    """Put something odd somewhere into a JSON value."""
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    if not keys:
        return False
    key = draw.choice(keys)
    if isinstance(content[key], dict | list) and content[key] and draw.random() < 0.7:
        return odd(draw, content[key])
    content[key] = draw.choice([each for each in ODD if each != content[key]])
    return True


def held_against(resume: Callable[[Checkpoint], str]) -> set[int]:
    """The numbers of the nodes that a run holds against its beginning, where they may not move."""
    met, readers, unlike = set(), [], fit._unlike

    def noted(here: object, there: object, *, moves: bool) -> str:
        if not moves:
            met.add(id(there))
        return unlike(here, there, moves=moves)

    def reader(*given: object) -> object:
        readers.append(whole(*given))
        return readers[-1]

    whole = checkpoint._Reader
    fit._unlike, checkpoint._Reader = noted, reader
    resume(Checkpoint(RESULT, IDENTITY))
    fit._unlike, checkpoint._Reader = unlike, whole
    return {number for number, made in readers[0].made.items() if id(made) in met}


def opened(content: bytes) -> tuple[dict, dict, bytes]:
    header, _, rest = content[:-DIGEST].partition(b"\n")
    state, _, memory = rest.partition(b"\n")
    return json.loads(header), json.loads(state), memory


def closed(header: dict, state: dict, memory: bytes) -> bytes:
    told = b"\n".join((json.dumps(header).encode(), json.dumps(state).encode(), memory))
    return told + hashlib.sha256(told).digest()


def outcome(again: Callable[[Checkpoint], str], undisturbed: str, done: str, *, known: bool) -> str:
    """What becomes of a run that resumes. known: whether what was forged was there when the run began."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            kept = Checkpoint(RESULT, IDENTITY)
            found = again(kept)
            spent(0, kept.earlier)
        except CheckpointError as error:
            line = str(error)
            if not line.isprintable() or len(line) > 1000:
                return f"WRONG: a refusal that is no line: {line!r}"
            return "resumed, and then one line" if "and then failed" in line else "refused"
    if any("not resumed" in line and not line.isprintable() for line in said.getvalue().splitlines()):
        return f"WRONG: {said.getvalue()!r}"
    if found == undisturbed:
        return "the same result" if kept.resumed else "started over, to the same result"
    if done in FORM and known:
        return f"WRONG: another result after {done}"
    return "another result, of other values"


def script(seed: int, tries: int, tally: Tally) -> None:
    draw = random.Random(seed)
    data = problem()
    streams = {0: chunks(data)[0]}

    def result(spec: dict, kept: Checkpoint | None = None) -> str:
        return json.dumps(loop.train(spec, data, streams, CPU, None, kept))

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        checkpoint.SHARE = 1
        for each in range(tries // TRIES):
            learner, options = VARIANTS[each % len(VARIANTS)]
            spec = spec_of(learner, options, optimizer=draw.choice(("sgd", "adam")))
            with contextlib.redirect_stderr(io.StringIO()):
                undisturbed = result(spec)
                interrupted(spec, data, streams, step=draw.randrange(1, json.loads(undisturbed)[0]["steps"]))
                whole = opened(FILE.read_bytes())
                known = held_against(functools.partial(result, spec))
            for number in range(TRIES):
                header, state, memory = copy.deepcopy(whole)
                done, node = forged(draw, header, state)
                FILE.write_bytes(closed(header, state, memory))
                again = functools.partial(result, spec)
                tally.attempt(
                    f"{learner} {each}, try {number}, {done}",
                    functools.partial(outcome, again, undisturbed, done, known=node < 0 or node in known),
                )
            FILE.unlink(missing_ok=True)
        os.chdir("/")


if __name__ == "__main__":
    run(script, 2000)
