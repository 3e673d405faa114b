"""The colours of figures: one colour and marker a method in all figures of all papers, and palettes for all else."""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, count, islice
from typing import Any

from matplotlib.typing import FillStyleType

TEN = [  # Petroff (2021), ten colours that colour-blind readers can distinguish
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
]
BLUE, YELLOW, RED, GREY, PURPLE, BROWN, ORANGE, KHAKI, SLATE, CYAN = TEN
SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]  # Okabe and Ito (2008)
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

# No two methods have the same colour and marker, and none of a paper's methods the colour of another of its figures'.
METHODS = {
    "single": (SLATE, "o"),
    "random": (SLATE, "X"),
    "random_multi_model": (GREY, "X"),
    "multi_model": (ORANGE, "D"),
    "multi_task": (KHAKI, "X"),
    "offline": (KHAKI, "P"),
    "ewc": (BLUE, "s"),
    "si": (CYAN, "v"),
    "mas": (BROWN, "^"),
    "rwalk": (GREY, "D"),
    "prog_nn": (PURPLE, "X"),
    "gem": (ORANGE, "s"),
    "a_gem": (RED, "o"),
    "icarl": (YELLOW, "P"),
    "gr": (KHAKI, "v"),
    "vcl": (PURPLE, "o"),
    "vcl_coreset": (YELLOW, "^"),
    "coreset_only": (BROWN, "D"),
    "vgr": (RED, "v"),
    "er": (BLUE, "o"),
    "ace": (ORANGE, "^"),
    "gdumb": (PURPLE, "s"),
    "mir": (CYAN, "s"),
    "cbrs": (BROWN, "P"),
    "gmed": (YELLOW, "D"),
    "cn_dpm": (GREY, "v"),
    "nn1": (YELLOW, "s"),
    "bartmap": (RED, "D"),
    "geppnet": (BLUE, "^"),
}
ALSO = {  # other names of a method in papers, and methods that are drawn as versions of another
    "van": "single",
    "online_mlp": "single",
    "pi": "si",
    "mm": "multi_model",
    "rand": "random",
    "randmm": "random_multi_model",
    "s_gem": "a_gem",
}
LINES: list[str | tuple] = ["-", "--", "-.", (0, (5, 1, 1, 1, 1, 1))]
FILLS: list[FillStyleType] = ["full", "none", "left", "top"]
HATCHES = ["", "////", "....", "xxxx", "----", "oooo", "||||", "\\\\\\\\"]


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn. line, fill, hatch: of its lines, markers and bars, which tell its versions apart."""

    colour: str
    marker: str
    line: str | tuple = LINES[0]
    fill: FillStyleType = "full"
    hatch: str = HATCHES[0]


def method_styles(labels: Iterable[object], factor: str = "learner") -> dict:
    """The style of each of a figure's lines, bars or points, by its level of `factor`; no two are the same.

    Learners have their method's: a label belongs to the method that its beginning names, so that `ewc_je` and `van_s`
    are versions of EWC and of plain training. The version that is named like the method has the full line, or else the
    first. A method that is not in `METHODS` has a colour that its name decides, and that no other has here. Levels of
    any other factor follow each other through a palette of their own.
    """
    levels = list(labels)
    if factor != "learner":
        return _apart({level: (SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]) for i, level in enumerate(levels)})
    named = {level: str(level) for level in levels}
    methods = {level: _method(label, [*named.values()]) for level, label in named.items()}
    pairs = dict(METHODS)
    taken = {pairs[method][0] for method in methods.values() if method in pairs}
    for method in dict.fromkeys(methods.values()):
        if method not in pairs:
            pairs[method] = _own_style(method, taken)
            taken.add(pairs[method][0])
    found = _apart(
        {level: pairs[methods[level]] for level in sorted(levels, key=lambda each: named[each] != methods[each])}
    )
    return {level: found[level] for level in levels}


def _apart(asked_for: Mapping[Any, tuple[str, str]]) -> dict[Any, MethodStyle]:
    """The styles of levels by the colours and markers that they ask for; who comes later gives way.

    Levels of one colour differ by line, fill and hatch; after four of one marker by the marker, at last by a numeral.
    """
    taken: set[tuple[str, str, int]] = set()
    of_colour: Counter[str] = Counter()
    found = {}
    for level, (colour, marker) in asked_for.items():
        markers = chain([marker], MARKERS, (f"${number}$" for number in count(1)))
        looks = ((each, version) for each in markers for version in range(len(LINES)))
        marker, version = next(look for look in looks if (colour, *look) not in taken)
        taken.add((colour, marker, version))
        hatch = _hatch(of_colour[colour])
        of_colour[colour] += 1
        found[level] = MethodStyle(colour, marker, LINES[version], FILLS[version], hatch)
    return found


def _hatch(number: int) -> str:
    """The pattern of a bar, by its number among the bars of one colour: first `HATCHES`, then several at once."""
    patterns = HATCHES[1:]
    joined = (each for size in range(len(patterns) + 1) for each in combinations(patterns, size))
    return "".join(next(islice(joined, number, None)))


def _method(label: str, labels: Sequence[str]) -> str:
    """The method that a label belongs to: the longest known name, or else the shortest label, that it begins with."""
    for names, choose in (([*METHODS, *ALSO], max), (labels, min)):
        if fitting := [name for name in names if f"{label}_".startswith(f"{name}_")]:
            name = choose(fitting, key=len)
            return ALSO.get(name, name)
    return label


def _own_style(method: str, avoided: set[str]) -> tuple[str, str]:
    """A colour and a marker for a method that has none; the colour is not among the `avoided` ones, unless all are."""
    start = zlib.crc32(method.encode())
    colours = [TEN[(start + i) % len(TEN)] for i in range(len(TEN))]
    return next((colour for colour in colours if colour not in avoided), colours[0]), MARKERS[start % len(MARKERS)]
