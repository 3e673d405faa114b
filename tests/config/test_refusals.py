"""What is wrong is refused in one telling line."""

from pathlib import Path

import pytest
from tiny_paper import (
    CELL,
    COSTS,
    DATASETS,
    GRID,
    MIXING,
    ORACLES,
    PAPER,
    RANDOM,
    SCALE,
    SPLIT,
    TEXT,
    WEIGHTS,
    edit,
    plan,
    refusal,
)

from clpapers.config.files import read_text, read_yaml
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError

pytestmark = pytest.mark.usefixtures("folder")


REFUSED = [
    # keys and values of a cell
    (PAPER, "memory: 10", "memroy: 10", "defaults.budget: unknown key 'memroy'; allowed: batch, clip, learning_rate, "
     "memory, memory_per_class, momentum, optimizer, replay_batch"),
    (PAPER, "memory: 10", "memory: 0", "defaults.budget.memory: 0 must be at least 1"),
    (PAPER, "batch: 10,", "batch: tasks,", "defaults.budget.batch: 'tasks' must be items a step, or `task`, all of a "
     "task in one step (of an epoch, where a task has several)"),
    (PAPER, "batch: 10, replay", "replay", f"{CELL}: budget: 'batch' is missing"),
    (PAPER, ", memory: 10", "", f"{CELL}: budget: 'memory' is missing"),
    (PAPER, "learning_rate: 0.1", "learning_rate: 1e-3", "defaults.budget.learning_rate: '1e-3' is not of type number; "
     "YAML reads 1e-3 as text, write 1.0e-3"),
    (PAPER, "learning_rate: 0.1", "learning_rate: .inf", "line 6 .inf is not a finite number"),
    (PAPER, "  precision: float32\n", "", f"{CELL}: cell: 'precision' is missing"),
    # orders
    (PAPER, "name: stf, mu_sigma: 0.05", "name: stff", "defaults.order.name: 'stff' is not one of stf, split, "
     "split_two, split_domains, split_ordered, split_range, split_overlapping, dominant, dominant_ordered, random, "
     "offline, permuted_pixels, instances"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: instances", f"{CELL}: order: 'burst' is missing"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: instances, burst: null", f"{CELL}: order instances: mnist has no "
     "instances; take icubworld or icubworld_demonstrator or "),
    (PAPER, "{name: split, tasks: 2}", "{name: instances, burst: null}", "targets.figure1.streams[0]: order instances: "
     "toy-3-2 has no instances; take icubworld or icubworld_demonstrator or "),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, mu_sigma_factor: 10", f"{CELL}: order.mu_sigma_factor 10 gives mu_sigma "
     "0.5; it must be less than 0.5"),
    (PAPER, "mu_sigma: 0.05, ", "", f"{CELL}: order: 'mu_sigma' is missing"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, tasks: 2", f"{CELL}: order: unknown key 'tasks'; allowed: length, "
     "mu_sigma, mu_sigma_factor"),
    # oracles and restrictions
    (PAPER, "oracle: {name: none}", "oracle: sp9", f"{CELL}: oracle: 'sp9' is not one of none"),
    (PAPER, "oracle: {name: none}", "oracle: {name: none, tasks: 2}", f"{CELL}: oracle: unknown key 'tasks'; "
     "allowed: "),
    (PAPER, "oracle: {name: none}", "oracle: {name: split, tasks: 11}", f"{CELL}: oracle.tasks: 11 is more than the 10 "
     "classes"),
    (PAPER, "oracle: {name: none}", "oracle: {name: dominant_tasks, shares: [0.2, 0.3]}", f"{CELL}: oracle: shares "
     "[0.2, 0.3] sum to 0.5, not to 1"),
    (PAPER, "name: single_head", "name: td_es", f"{CELL}: restriction td_es needs an order of split or "
     "split_two or split_range or split_overlapping or split_ordered"),
    (PAPER, "restriction: {name: single_head}", "restriction: {}", f"{CELL}: restriction: 'name' is missing"),
    (PAPER, "paper: tiny\n", "paper: tiny\noracles: {sp2: {name: splitt}}\n", "oracles.sp2.name: 'splitt' is not one "
     "of none, split, dominant_tasks, random_tasks, chunks, entropy"),
    (PAPER, "test: 20", "test: 20, oracles: [sp9]", f"{CELL}: oracle: 'sp9' is not one of none"),
    (PAPER, "test: 20", "test: 20, trace: 5", f"{CELL}: evaluation.trace: learner er does not measure it; write it in "
     "the cell of a learner that does, such as vgr"),
    # learners and nets
    (PAPER, "er: {forward: separate}", "mirr: {}", "learners.mirr.method: 'mirr' is not one of a_gem, "
     "a_gem_all_classes, ace, bartmap, "),
    (PAPER, "er: {forward: separate}", "er: {method: s_gem, write: ring, cell: {order: {name: split, tasks: 5, "
     "cycles: 2}}}", f"{CELL}: order.cycles: learner s_gem needs tasks that come once; leave it out"),
    (PAPER, "er: {forward: separate}", "er: {}", f"{CELL}: learner.er: 'forward' is missing"),
    (PAPER, "forward: separate", "forward: twice", "learners.er.forward: 'twice' is not one of separate, joint, "
     "concatenated"),
    (PAPER, "forward: separate", "mask: present", "learners.er: unknown key 'mask'; allowed: cell, "
     "classes, forward, method"),
    (PAPER, "learners: {ace: {cell", "learners: {aec: {cell", "datasets.cifar10.learners.aec: 'aec' is not one of er, "
     "ace"),
    (PAPER, "name: cnn, width: 2", "name: resnet18_reduced, width: 2, head: joint_embedding", "datasets.cifar10: "
     "net.head joint_embedding: it needs attributes, which only cub200 or awa2 has"),
    (PAPER, "name: cnn, width: 2", "name: resnet18, width: 2, pool: true, head: linear, weights: imagenet",
     "datasets.cifar10: net.weights imagenet needs width 64, not 2; or write weights: none"),
    (PAPER, "name: mlp, hidden: [4]", "name: resnet18, width: 64, pool: true, head: linear, weights: imagenet",
     "datasets.mnist: net.weights imagenet needs channels 3, not 1; or write weights: none"),
    (PAPER, GRID, GRID + "\n    cell: {net: {name: resnet18, width: 8, pool: true, head: linear, weights: imagenet}}",
     f"{CELL}: net.weights imagenet needs width 64, not 8; or write weights: none"),
    (PAPER, "scaling: symmetric", "scaling: imagenet", f"{CELL}: scaling imagenet: it needs 3 channels, mnist has 1"),
    (PAPER, GRID, GRID + "\n    cell: {scaling: centred, order: {name: permuted_pixels, tasks: 2}}",
     f"{CELL}: scaling centred: not with permuted_pixels; take unit or symmetric"),
    (PAPER, GRID, GRID + "\n    cell: {budget: {optimizer: adam, momentum: 0.9}}",
     f"{CELL}: budget.momentum: adam takes none; leave it out, or take sgd"),
    # data sets, grids and streams
    (PAPER, "  cifar10: {net", "  cifra10: {net", "datasets: 'cifra10' is not one of mnist, fashion_mnist, emnist, "),
    (PAPER, "dataset: [mnist, ", "dataset: [mnits, ", "targets.table1.grid.dataset[0]: 'mnits' is not one of mnist, "
     "cifar10"),
    (PAPER, GRID, "learner: [er, mir]}", "targets.table1.grid.learner[1]: 'mir' is not one of er, ace"),
    (PAPER, GRID, "learner: er}", "targets.table1.grid.learner: 'er' is not of type array"),
    (PAPER, ", " + GRID, "}", "targets.table1.grid: 'learner' is missing; a cell needs a dataset and a learner"),
    (PAPER, GRID, GRID[:-1] + ", order.mu_sigma_factor: [1, 12]}", "targets.table1, cell dataset=mnist learner=er "
     "order.mu_sigma_factor=12: order.mu_sigma_factor 12 gives mu_sigma 0.6; it must be less than 0.5"),
    (PAPER, GRID, GRID[:-1] + ", budget.memory: [5, -5]}", f"{CELL} budget.memory=-5: budget.memory: -5 must be at "
     "least 1"),
    (PAPER, GRID, GRID[:-1] + ", budget.memroy: [5]}", f"{CELL} budget.memroy=5: budget: unknown key "
     "'memroy'; allowed: batch, clip, learning_rate, memory, memory_per_class, momentum, optimizer, replay_batch"),
    (PAPER, GRID, GRID[:-1] + ", learner.alpha: [1]}", "targets.table1.grid.learner.alpha: none of er, ace takes it"),
    (PAPER, GRID, GRID[:-1] + ", learner.cell.net: [1]}", "targets.table1.grid.learner.cell.net: none of er, ace "
     "takes it"),
    (PAPER, GRID, GRID[:-1] + ", learner.forward: [separate, twice]}", f"{CELL} learner.forward=twice: "
     "learner.er.forward: 'twice' is not one of separate, joint, concatenated"),
    (PAPER, GRID, GRID + "\n    without: [{learner: [mir]}]", "targets.table1.without[0].learner: 'mir' is not in "
     "the grid"),
    (PAPER, GRID, GRID + "\n    without: [{learner: [er]}, {oracle: [sp2]}]", "targets.table1.without[1].oracle: 'sp2' "
     "is not in the grid"),
    (PAPER, GRID, GRID + "\n    undefined: {forgetting: [er]}", "targets.table1.undefined: 'forgetting' is not one of "
     "final_accuracy"),
    (PAPER, GRID, GRID + "\n    undefined: {final_accuracy: [mir]}", "targets.table1.undefined.final_accuracy: "
     "'mir' is not one of er, ace"),
    (PAPER, GRID, GRID + "\n    undefined: {final_acuracy: [er]}", "targets.table1.undefined: 'final_acuracy' is not "
     "one of final_accuracy, "),
    (PAPER, "toy-3-2", "toy-3-0", "targets.figure1.streams[0].dataset: 'toy-3-0' is not one of mnist, cifar10"),
    (PAPER, ", seed: 0}", "}", "targets.figure1.streams[0]: 'seed' is missing"),
    (PAPER, "nets: [mnist]", "nets: [mnits]", "targets.table2.nets[0]: 'mnits' is not one of mnist, cifar10"),
    (PAPER, "nets: [mnist]", "nets: [mnist-mir]", "targets.table2.nets[0]: 'mir' is not one of er, ace"),
    (PAPER, "kind: table, measure: architecture, render: architecture_table", "kind: figure, measure: architecture, "
     "render: diagram", "targets.table2.nets[0]: 'mnist' has no head joint_embedding; write <data set>-<learner> for a "
     "learner whose net has one"),
    # targets
    (PAPER, "title: Table 1", "titel: Table 1", "targets.table1: unknown key 'titel'; allowed: "),
    (PAPER, "measure: learning", "measure: intervals", "targets.table1.measure: 'intervals' is not one of "
     "architecture, "),
    (PAPER, "render: results_table", "render: style", "targets.table1.render: 'style' is not one of "),
    (PAPER, "[final_accuracy]", "[final_acuracy]", "targets.table1.metrics[0]: 'final_acuracy' is not one of "
     "final_accuracy, "),
    (PAPER, "    metrics: [final_accuracy]\n", "", "targets.table1: 'metrics' is missing"),
    (PAPER, "statistic: prevalence, ", "", "targets.figure1: 'statistic' is missing"),
    (PAPER, "measure: stream_classes", "measure: stream_statistics", "targets.figure1.streams[0].dataset: 'toy-3-2' "
     "must have the form ^(?!toy-)"),
    (PAPER, "caption: Both.", "seeds: 3-1", "targets.table1: 'caption' is missing"),
    (PAPER, "section: \"1\"", "section: \"1\"\n    seeds: 3-1", "targets.table1.seeds: '3-1' holds no seed; write "
     "first-last, first not above last"),
    # files as such
    (PAPER, "learners:\n", "lerners:\n", "(top): unknown key 'lerners'; allowed: authors, conclusions, datasets, "
     "defaults, learners, link, oracles, own, paper, scales, seeds, selection, targets, title, year"),
    (PAPER, "title: Table 1\n", "title: Table 1\n    title: Table I\n", "line 19 key 'title' stands twice"),
    (PAPER, "defaults:\n", "defaults: [\n", "line 4 did not find expected ',' or ']'"),
    (PAPER, "defaults:\n", "defaults:\n\tx: 1\n", "line 3 found character that cannot start any token"),
    (PAPER, TEXT[PAPER], "- a list", "holds no keys; expected a mapping"),
    (PAPER, TEXT[PAPER], "", "holds no keys; expected a mapping"),
    # the seeds of a paper
    (PAPER, "paper: tiny\n", "paper: tiny\nseeds: 3-1\n", "seeds: '3-1' holds no seed; write first-last, first not "
     "above last"),
    (PAPER, "paper: tiny\n", "paper: tiny\nseeds: {a: 3}\n", "seeds: {'a': 3} is not of type string or "
     "integer or array"),
    (PAPER, "paper: tiny\n", "paper: tiny\nseeds: []\n", "seeds: no seed; write one, a range or a list, such as "
     "3, 0-19 or 0,2,5"),
    # scales
    (SCALE, "seeds: 0-3", "seeds: 3-1", "seeds: '3-1' holds no seed; write first-last, first not above last"),
    (SCALE, "seeds: 0-3\n", "", "(top): 'seeds' is missing"),
    (SCALE, "seeds_per_job: 2", "seeds_per_job: all", "seeds_per_job: 'all' must be a number, or auto"),
    (SCALE, "  mnist: {train", "  mnits: {train", "stand_ins: 'mnits' is not one of mnist, fashion_mnist, emnist, "),
    (SCALE, "  tiny:\n", "  tyni:\n", "papers: 'tyni' has no file in config/papers/"),
    (SCALE, "figure1: {", "figure9: {", "papers.tiny.targets: 'figure9' is not one of table1, figure1, table2"),
    (SCALE, "{mnist: {order", "{mnits: {order", "papers.tiny.datasets: 'mnits' is not one of mnist, cifar10"),
    (SCALE, "length: 30", "lenght: 30", "papers.tiny.datasets.mnist.order: unknown key 'lenght'; allowed: burst, "
     "cycles, epochs, first, items, iterations, last, length, mu_sigma, mu_sigma_factor, name, once, per_task, "
     "random_state, renumbered, share, tasks, unpermuted_first"),
    (SCALE, "    targets:", "    learners: {er: {mask: present}}\n    targets:", "papers.tiny.learners.er: unknown key "
     "'mask'; allowed: cell, classes, forward, method"),
    # data sets
    (DATASETS, "  train: 60000", "  train: -1", "mnist.train: -1 must be at least 1"),
    (DATASETS, "      formats: [idx]", "      formats: [xdi]", "mnist.sources[0].formats[0]: 'xdi' is not one of "
     "awa2, cifar_python, "),
    # data sets of features
    (DATASETS, "of: cifar100,", "of: cifar1000,", "cifar100_resnet50.features.of: 'cifar1000' is not one of mnist, "),
    (DATASETS, "of: cifar100,", "of: cifar100_resnet50,", "cifar100_resnet50.features.of: 'cifar100_resnet50' is not "
     "one of mnist, "),
    (DATASETS, "of: cifar100,", "of: mnist,", "cifar100_resnet50.features.of: mnist has 1 channels; take one of 3"),
    (DATASETS, "seal, whale]", "whale]", "cifar100_resnet50.categories: 'seal' must be a class of cifar100 that stands "
     "in one category"),
    (DATASETS, "[aquarium_fish, flat", "[whale, aquarium_fish, flat", "cifar100_resnet50.categories: 'whale' must be a "
     "class of cifar100 that stands in one category"),
    (DATASETS, "[aquarium_fish, flat", "[cod, aquarium_fish, flat", "cifar100_resnet50.categories: 'cod' must be a "
     "class of cifar100 that stands in one category"),
    (DATASETS, "weights: resnet50_imagenet", "weights: resnet50_places", "icubworld_resnet50.features.weights: "
     "'resnet50_places' is not one of resnet50_imagenet"),
    (SCALE, "  mnist: {train", "  cifar100_resnet50: {train", "stand_ins: 'cifar100_resnet50' is not one of mnist, "),
    (SCALE, "stand_ins:", "features: {size: 31}\nstand_ins:", "features.size: 31 must be at least 32"),
    (SCALE, "stand_ins:", "features: {of: mnist}\nstand_ins:", "features: unknown key 'of'; allowed: size, "
     "test_per_class, train_per_instance"),
    (DATASETS, "{of: icubworld, weights: resnet50_imagenet, size: 224}", "{of: cifar10, weights: resnet50_imagenet, "
     "size: 224, train_per_instance: 5}", "icubworld_resnet50.features.train_per_instance: cifar10 has no instances; "
     "leave it out"),
    # what would only fail when it is run
    (PAPER, "memory: 10", "memory: 10.0", "defaults.budget.memory: 10.0 is not of type integer"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split, tasks: 11", f"{CELL}: order split: tasks: 11 is more than the "
     "10 classes"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_range, first: 5, last: 10, tasks: 2", f"{CELL}: order "
     "split_range: 5 to 10 are not among the 10 classes"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_overlapping, first: 5, last: 9, tasks: 2, per_task: 6",
     f"{CELL}: order split_overlapping: per_task: 6 is more than the 5 classes"),
    (PAPER, "length: null", "length: 50001", "targets.table1, cell dataset=cifar10 learner=er: order.length: 50001 is "
     "more than the 50000 items"),
    (PAPER, "er: {forward: separate}", "er: {method: s_gem, write: ring, cell: {budget: {memory: 9}}}", f"{CELL}: "
     "budget.memory: 9 is fewer than one item for each class of each task; take 10 or more"),
    (PAPER, "er: {forward: separate}", "er: {method: prog_nn}", "targets.table1, cell dataset=cifar10 learner=er: "
     "learner prog_nn needs net.name mlp or resnet18_reduced or resnet18, not cnn"),
    (PAPER, "er: {forward: separate}", "er: {method: multi_model, widths: {'2': 3}}", f"{CELL}: learner.widths: 1 "
     "tasks are not among 2"),
    (PAPER, "  cifar10: {net: {name", "  icubworld_resnet50: {net: {name", "datasets.icubworld_resnet50: net.name cnn: "
     "icubworld_resnet50 has features; take mlp or exstream_mlp"),
    (PAPER, "nets: [mnist]", "nets: ['']", "targets.table2.nets[0]: '' is not one of mnist, cifar10"),
    (PAPER, "nets: [mnist]", "nets: [mnist-]", "targets.table2.nets[0]: '' is not one of er, ace"),
    (PAPER, "kind: table\n", "kind: figure\n", "targets.table1.kind: render results_table draws no figure"),
    (PAPER, GRID, GRID + "\n    rows: learnr", "targets.table1.rows: 'learnr' is not a factor of the grid: dataset, "
     "learner"),
    (PAPER, GRID, GRID + "\n    per_class: [mnits]", "targets.table1.per_class: 'mnits' is not one of mnist, cifar10"),
    (PAPER, "  table1:\n", "  table 1:\n", r"targets: 'table 1' must have the form ^\w+$"),
    (PAPER, "paper: tiny\n", "paper: tyni\n", "paper: 'tyni' is not the file's name, tiny"),
    (SCALE, "length: 30", "length: 60001", f"papers.tiny: {CELL}: order.length: 60001 is more than the 60000 items"),
    (SCALE, "seeds: 0-3", "seeds: 0-1000", "seeds: '0-1000' holds 1001 seeds; take at most 1000"),
    # YAML that is more than JSON, or more than memory holds
    (PAPER, "memory: 10", "memory: 0x_", "line 6 '0x_' is no plain decimal number; write it as one, or in quotes if "
     "it is text"),
    (PAPER, "memory: 10", "memory: !!bool x", "line 6 'x' is not of type bool"),
    (PAPER, "memory: 10", "memory: 99999999999", "line 6 '99999999999' is beyond ±2147483647"),
    (PAPER, "paper: tiny\n", "paper: tiny\n1: 2\n", "line 2 key '1' is not text; write it in quotes"),
    (PAPER, "paper: tiny\n", 'paper: tiny\n"a\\nb": 2\n', r"line 2 key 'a\nb' is not a line of text"),
    (PAPER, "paper: tiny\n", "paper: !!python/name:os.system\n", "line 1 could not determine a constructor for the "
     "tag 'tag:yaml.org,2002:python/name:os.system'"),
    (PAPER, "paper: tiny\n", "paper: &a [*a]\n", "line 1 found unconstructable recursive node"),
    (PAPER, "paper: tiny\n", f"paper: {'[' * 100}\n", "line 1 nests deeper than 30 levels"),
    (PAPER, "paper: tiny\n", "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9 * (i > 0)} 1]\n" for i in range(7)), "line 6 "
     "holds more than 50000 values, each alias counted with its content"),
    # pre-trained weights
    (WEIGHTS, "kind: standin", "kind: stand_in", "resnet18_imagenet.sources[2].kind: 'stand_in' is not one of folder, "
     "torchvision, npm, standin"),
]  # fmt: skip


@pytest.mark.parametrize("shape", [(1, 1), (3, 32), (32, 2)])
def test_images_that_a_net_cannot_take_are_refused_in_the_plan(shape):
    """The net `cnn` halves the sides twice."""
    for sides in ((4, 4), shape):
        edit(
            DATASETS,
            "  shape: [32, 32, 3]\n  classes: [airplane",
            f"  shape: [{sides[0]}, {sides[1]}, 3]\n  classes: [airplane",
        )
        if sides == shape:
            with pytest.raises(
                ConfigError, match=f"^{PAPER}: datasets.cifar10: net.name cnn: .* 4 pixels .* {shape[0]}×{shape[1]};"
            ):
                plan()
        else:
            plan()
            edit(DATASETS, "[4, 4, 3]", "[32, 32, 3]")


@pytest.mark.parametrize(("file", "old", "new", "line"), REFUSED)
def test_what_is_wrong_is_refused_in_one_line(file, old, new, line):
    plan()
    edit(file, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    told = str(refusal.value)
    assert "\n" not in told
    assert told.startswith(f"{file}: {line}")
    assert told == f"{file}: {line}" or line.endswith(" ")  # a line that ends in a blank goes on with what there is


@pytest.mark.parametrize(
    ("order", "learner", "options", "line"),
    [
        (SPLIT, "ewc", {"oracle": ["sp9"]}, f"oracle: 'sp9' is not one of {', '.join(ORACLES)}"),
        (SPLIT, "ewc", {"oracle": ["entropy"]}, "learner ewc needs an oracle that names tasks, not entropy"),
        (SPLIT, "gr", {"oracle": ["entropy"]}, "learner gr needs an oracle that names tasks, not entropy"),
        (RANDOM, "ewc", {"oracle": ["sp2"], "restriction": ["td_es"]}, "restriction td_es needs an order of split or "
         "split_two or split_range or split_overlapping or split_ordered"),
        (SPLIT, "gmed", {"defaults": {"budget": {"optimizer": "adam"}}}, "learner gmed needs budget.optimizer sgd, not "
         "adam"),
        (SPLIT, "gr", {"defaults": {"scaling": "symmetric"}}, "learner gr needs scaling unit, not symmetric"),
        (SPLIT, "er", {"oracle": ["sp2"], "restriction": ["es"], "evaluated": ["sp5"]}, "evaluation.oracles: 'sp2' is "
         "missing, which restricts the test"),
        (SPLIT, "er", {"oracle": ["sp2"], "restriction": ["td"], "evaluated": []}, "evaluation.oracles: 'sp2' is "
         "missing, which restricts the test"),
        (SPLIT, "er", {"defaults": {"oracle": ORACLES["sp2"]}, "restriction": ["es"], "evaluated": ["sp5"]},
         "evaluation.oracles: {'name': 'split', 'tasks': 2} is missing, which restricts the test; give it a name under "
         "oracles, and list that"),
        *((order, "er", {"oracle": ["domains"], "restriction": [name], "evaluated": ["domains"]}, f"restriction {name} "
           f"tests by the oracle's tasks, and the chunks of order {order['name']} are no groups of classes; take "
           "single_head or ea, or an order of split or split_two or split_range or split_overlapping or split_ordered")
          for order, name in zip(MIXING, ("es", "es_ed", "td"))),
    ],
)  # fmt: skip
def test_what_a_learner_an_order_or_a_run_cannot_do_is_refused_in_one_line(order, learner, options, line):
    assert refusal(order, [learner], **options) == line


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[[er, ace]]", "[[er, gem]]", "targets.table7.ratios[0]: 'gem' is not in the grid"),
        ("[[er, ace]]", "[[er]]", "targets.table7.ratios[0]: ['er'] needs at least this many entries: 2"),
        (", ratios: [[er, ace]]", "", "targets.table7: 'ratios' is missing"),
        ("decimals: 2", "decimals: {lca10: 2}", "targets.table7.decimals: {'lca10': 2} is not of type integer"),
        ("tasks: 3}", "tasks: 3}, budget: {batch: task}", "targets.table7: measure cost needs a number for "
         "budget.batch, not task"),
        ("split, tasks: 3", "random", "targets.table7: measure cost needs orders of tasks, not random"),
        ("[training_seconds]", "[lca10]", "targets.table7.metrics[0]: 'lca10' is a metric of measure learning, not of "
         "cost"),
        ("measure: cost", "measure: learning", "targets.table7.metrics[0]: 'training_seconds' is a metric of "
         "measure cost, not of learning"),
    ],
)  # fmt: skip
def test_costs_that_cannot_be_measured_are_refused_in_one_line(old, new, line):
    Path(PAPER).write_text(TEXT[PAPER] + COSTS)
    plan()
    edit(PAPER, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value) == f"{PAPER}: {line}"


@pytest.mark.parametrize("number", ["017", "1:30", "0x1F", "0b11", "1_000", "-017", "+1:30", "190:20:30", "00", "0o17"])
def test_numbers_that_yaml_reads_otherwise_than_people_are_refused(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\nother: 1.0\n")
    if number == "0o17":  # which YAML 1.1 takes for text
        assert read_yaml(tmp_path / "a.yaml")["key"] == "0o17"
        return
    with pytest.raises(ConfigError, match=r"a\.yaml: line 1 .* is no plain decimal number; write it as one"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("number", ["1:30.5", "1_0.5", "190:20:30.15", "1_000.0e+3"])
def test_so_are_those_with_a_point(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\n")
    with pytest.raises(ConfigError, match="is no plain decimal number"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("number", ["1.0e+308", "-1.0e+31", "1.1e+30", "9" * 400 + ".0"])
def test_numbers_beyond_single_precision_are_refused(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\n")
    with pytest.raises(ConfigError, match=r"is beyond ±1e\+30|not a finite number"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("number", ["0", "-1", "+7", "10", "1.0e+30", "1.0e-8", ".5", "1.", "-0.0", "2147483647"])
def test_plain_numbers_are_read(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\n")
    assert read_yaml(tmp_path / "a.yaml")["key"] == float(number)


@pytest.mark.parametrize(
    ("scale", "paper", "line"),
    [
        ("tyni", "tiny", "config/scales/tyni.yaml: no such file; there are: real, tiny"),
        ("tiny", "tyni", "config/papers/tyni.yaml: no such file; there are: tiny"),
    ],
)
def test_a_missing_file_is_told_with_those_there_are(scale, paper, line):
    with pytest.raises(ConfigError) as refusal:
        Plan(scale, [paper])
    assert str(refusal.value) == line


def test_a_file_that_is_not_utf8_is_refused():
    Path(PAPER).write_bytes(b"title: \xff\xfe")
    with pytest.raises(ConfigError, match=r"^config/papers/tiny\.yaml: .*invalid start byte"):
        read_yaml(Path(PAPER))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{learning_rate: 0,05}", "0,05 is a number and a key; write a decimal point: 0.05"),
        ("{learning_rate: 0,05, batch: 3}", "0,05 is a number and a key; write a decimal point: 0.05"),
        ("{batch: 1, 05: 3}", "key '05' is not text; write it in quotes"),
    ],
)
def test_a_decimal_comma_is_told_as_one(text, told):
    with pytest.raises(ConfigError, match=f"^here: line 1 {told}$"):
        read_text(text, "here")
    edit(PAPER, "learning_rate: 0.1,", "learning_rate: '0,1',")
    with pytest.raises(ConfigError, match=r"'0,1' is not of type number; write a decimal point: 0\.1"):
        plan()
