"""Seeds become blocks, and blocks files."""

import itertools
from pathlib import Path

import pytest
from tiny_paper import SCALE, TEXT, plan

from clpapers.config.paths import block_name, block_seeds, seeds_of, seeds_text

pytestmark = pytest.mark.usefixtures("folder")


def blocks(seeds, size, **options):
    Path(SCALE).write_text(TEXT[SCALE].replace("0-3", seeds).replace("seeds_per_job: 2", f"seeds_per_job: {size}"))
    whole = plan(**options)
    return [whole.blocks(cell) for cell in whole.cells.values()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
def test_blocks_cover_the_seeds_once_and_more_seeds_leave_whole_blocks_as_they_were(size):
    for first, last in [(0, 1), (0, 5), (1, 6), (3, 8), (4, 11)]:
        (each, *others) = blocks(f"{first}-{last}", size)
        assert others == [each] * len(others)
        assert list(itertools.chain(*each)) == list(range(first, last + 1))
        longer = blocks(f"{first}-{last + size}", size)[0]
        assert set(each[:-1]) <= set(longer)
        assert each[-1] in longer or (last + 1) % size  # only a block that was not full may grow


def test_auto_stacks_all_seeds_on_a_gpu_and_few_on_a_cpu():
    mlp, cnn = [range(0, 5), range(5, 10)], [range(k, k + 1) for k in range(10)]
    assert blocks("0-9", "auto") == [mlp, mlp, cnn, cnn]
    assert blocks("0-9", "auto", cuda=True) == [[range(0, 10)]] * 4


@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
def test_the_results_of_some_seeds_are_the_files_of_the_blocks_that_hold_any_of_them(size):
    Path(SCALE).write_text(TEXT[SCALE].replace("0-3", "2-11").replace("seeds_per_job: 2", f"seeds_per_job: {size}"))
    whole = plan()
    for cell, (first, last) in itertools.product(whole.cells.values(), [(2, 2), (3, 8), (4, 5), (0, 2), (11, 30)]):
        seeds = range(first, last + 1)
        found = [block_seeds(path.stem) for path in whole.results(cell, seeds)]
        assert found == [block for block in whole.blocks(cell) if set(block) & set(seeds)]


@pytest.mark.parametrize(
    ("seeds", "name"),
    [
        (range(3, 4), "seed3"),
        (range(20), "seeds0-19"),
        (range(1), "seed0"),
        (range(1000), "seeds0-999"),  # the most seeds, and the highest number
        (range(999999999, 10**9), "seed999999999"),
    ],
)
def test_a_blocks_name_and_back(seeds, name):
    assert block_name(seeds) == name
    assert block_seeds(name) == seeds


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        (3, range(3, 4)),
        ("3", range(3, 4)),
        ("0-3", range(4)),
        ([2, 0, 1, 2], range(3)),
        ("0,2,5", (0, 2, 5)),
        ("0-1, 5-6", (0, 1, 5, 6)),
        (["7", "0-1"], (0, 1, 7)),
        ([0, "2,5"], (0, 2, 5)),
    ],
)
def test_a_seed_a_range_and_a_list_are_all_seeds(given, seeds):
    assert seeds_of(given, "--seeds") == seeds
    assert seeds_of(seeds_text(seeds), "--seeds") == seeds


def test_seeds_with_gaps_are_trained_in_blocks_without():
    """0-1 and 3 share a block of five, and 7 has its own; 2 is not trained."""
    assert blocks("[0, 1, 3, 7]", 5)[0] == [range(2), range(3, 4), range(7, 8)]
    assert blocks("'7,0-1'", 5)[0] == [range(2), range(7, 8)]
