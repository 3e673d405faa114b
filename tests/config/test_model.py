"""Cells, targets, blocks of seeds, and their files."""

import itertools
import json
from pathlib import Path

import pytest
import yaml
from tiny_paper import COSTS, PAPER, SCALE, TEXT, edit, hashes, of_table, plan, printed

from clpapers.config.paths import block_name, block_seeds, seeds_of, seeds_text
from clpapers.config.plan import Plan
from clpapers.graph import jobs
from clpapers.metrics.inputs import read

pytestmark = pytest.mark.usefixtures("folder")


def test_a_hash_does_not_depend_on_how_the_yaml_is_written():
    before = hashes()
    edit(PAPER, "mu_sigma: 0.05", "mu_sigma: 0.025, mu_sigma_factor: 2")
    content = yaml.safe_load(Path(PAPER).read_text())
    backwards = {key: content[key] for key in reversed(content)}
    backwards["defaults"] = {key: content["defaults"][key] for key in reversed(content["defaults"])}
    Path(PAPER).write_text("# Other words.\n" + yaml.safe_dump(backwards, sort_keys=False, default_flow_style=False))
    assert hashes() == before


def test_a_hash_is_of_all_but_the_seed_and_the_scale():
    before = hashes()
    Path("config/scales/other.yaml").write_text(TEXT[SCALE].replace("seeds: 0-3", "seeds: 0-9"))
    assert set(Plan("other", ["tiny"]).cells) == before


def test_a_learners_own_net_is_described_beside_the_data_sets():
    edit(PAPER, "ace: {cell: {budget: {memory: 7}}}", "ace: {cell: {net: {width: 9}}}")
    edit(PAPER, "nets: [mnist]", "nets: [cifar10, cifar10-ace]")
    whole = plan()
    assert [net["width"] for net in whole.targets["tiny/table2"].nets] == [2, 9]
    assert whole.nets["tiny/cifar10-ace"] == {"name": "cnn", "width": 9}
    assert whole.net_file("tiny", "cifar10-ace") == Path("results/tiny/runs/nets/tiny/cifar10-ace.json")


def test_equal_cells_of_two_targets_are_trained_once_for_the_seeds_of_both():
    learning = "{title: T, caption: c, section: '4', kind: table, measure: learning, render: results_table,\n     "
    learning += "metrics: [online_accuracy], seeds: 2-5, grid: {dataset: [mnist], learner: [er]}}"
    edit(PAPER, "  table2:", f"  table3:\n    {learning}\n  table2:")
    whole = plan()
    assert len(whole.cells) == 4
    ((_, shared),) = whole.targets["tiny/table3"].cells
    assert shared in of_table(whole).values()
    assert whole.blocks(shared) == [range(0, 2), range(2, 4), range(4, 6)]
    assert [path.stem for path in whole.results(shared, whole.targets["tiny/table3"].seeds)] == ["seeds2-3", "seeds4-5"]


def test_a_target_has_an_output_of_every_format_and_its_comparisons():
    printed("tiny,table1,er,mnist,final_accuracy,80,,,")
    edit(PAPER, "    render: results_table\n", "    render: results_table\n    paired: true\n")
    named = {name: [path.name for path in target.outputs] for name, target in plan().targets.items()}
    formats = ["csv", "md", "tex", "html"]
    assert named == {
        "tiny/table1": [f"table1.{ending}" for ending in [*formats, "reported.csv", "paired.csv"]],
        "tiny/figure1": [f"figure1.{ending}" for ending in ("pdf", "svg", "png", "caption.md", "caption.tex")],
        "tiny/table2": [f"table2.{ending}" for ending in formats],
    }


@pytest.mark.parametrize(
    ("old", "new", "trained", "measured", "rendered"),
    [
        ("learning_rate: 0.1", "learning_rate: 0.2", True, True, True),
        ("mu_sigma: 0.05", "mu_sigma: 0.06", True, True, True),
        ("precision: float32", "precision: float64", True, True, True),
        ("probes: 10", "probes: null", True, True, True),
        ("test: 20", "test: 20, every: 5", True, True, True),
        ("metrics: [final_accuracy]", "metrics: [online_accuracy]", False, True, True),
        ("caption: Both.", "caption: Two.", False, False, True),
        ("title: Table 2", "title: Table II", False, False, False),
        ("toy-3-2", "toy-3-3", False, False, False),
    ],
)
def test_a_hash_and_a_targets_digests_change_with_what_they_are_of_and_with_nothing_else(
    old, new, trained, measured, rendered
):
    before, cells = plan().targets["tiny/table1"], hashes()
    edit(PAPER, old, new)
    after = plan().targets["tiny/table1"]
    assert len(hashes()) == len(cells)
    assert hashes() & cells == (set() if trained else cells)
    assert (before.measured_digest != after.measured_digest) == measured
    assert (before.digest != after.digest) == rendered


def test_costs_are_measured_from_results_their_records_and_nets_though_a_seed_did_not_fit():
    Path(PAPER).write_text(TEXT[PAPER] + COSTS)
    here = plan()
    table = here.targets["tiny/table7"]
    files = jobs.job_of(here, table.metrics).inputs
    results = [path for _, cell in table.cells for path in here.results(cell)]
    assert len(results) == 4
    net = Path("results/tiny/runs/nets/tiny/mnist.json")
    assert sorted(files) == sorted([*results, *(path.with_suffix(".record.json") for path in results), net])
    assert jobs.job_of(here, here.targets["tiny/table1"].metrics).inputs[0].name == "seeds0-1.json"
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        seeds = [{"seed": 0, "test": {"none": {"total": [1]}}}, {"seed": 1, "out_of_memory": True}]
        file.write_text(json.dumps({"name": file.name, "seeds": seeds}))
    factors, key, result, record, read_net = next(read(here, table, files))
    assert (factors["learner"], key) == ("er", table.cells[0][1].hash)
    assert result["seeds"] == [{"seed": 0, "test": {"total": [1]}}, {"seed": 1, "out_of_memory": True}]
    assert (record["name"], read_net["name"]) == ("seeds0-1.record.json", "mnist.json")


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
        ([2, 0, 1], range(3)),
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
