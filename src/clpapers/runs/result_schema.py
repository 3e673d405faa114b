"""Whether a file of results has what training writes (`clpapers.runs.loop`), however it came here.

It is sound JSON: a cell, and of each seed the sections that the cell asks for. The numbers in them are not proven, as
who forges some can forge numbers that fit; `clpapers verify` trains them again.
"""

import json

# Errors that a file of another form may raise, here or where it is measured.
UNFIT = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
ALWAYS = ("steps", "test", "probes", "online", "learner", "learner_bytes", "diverged")  # sections that metrics read
ASKED = {"events": "every", "tasks": "shots"}  # section → the option of `evaluation` that asks for it


def results(content: bytes) -> tuple[dict, dict[int, dict]]:
    """A result file's cell, and its entry for each seed. Raises `ValueError`, a line, for any other file's content."""
    try:
        whole = json.loads(content, parse_constant=_no_number)
        cell, seeds = dict(whole["cell"]), {entry["seed"]: entry for entry in whole["seeds"]}
        if len(seeds) < len(whole["seeds"]) or any(type(seed) is not int for seed in seeds):
            raise ValueError("its seeds are no different whole numbers")
        asked = [section for section, option in ASKED.items() if cell["evaluation"].get(option) is not None]
        for seed, entry in seeds.items():
            lacking = [section for section in (*ALWAYS, *asked) if section not in entry]
            if lacking and entry.get("out_of_memory") is not True:
                raise ValueError(f"seed {seed}: no {', '.join(lacking)}")
    except UNFIT as error:
        raise ValueError(f"is no result of runs ({error if isinstance(error, ValueError) else repr(error)})") from None
    return cell, seeds


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
