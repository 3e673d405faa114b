"""EWC on CIFAR-100, identifier Sp=5: how near its penalty is to the edge of stability, and a run beyond it.

Plain descent of step ε moves a weight of importance F towards its centre by ε·λ·F of the distance, and diverges where
ε·λ·F is above 2. In the project's folder, once results/paper/datasets/cifar100.npz and the stream are there:
    python docs/findings/rules_ewc.py 1          seed 1 until step 161: ε·λ·F of the last batch and of 40 others
    python docs/findings/rules_ewc.py 1 20 4     F is taken at step 20, the stem's scaled so that its largest ε·λ·F is 4
"""

import sys

import torch

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.datasets import arrays
from clpapers.runs import loop
from clpapers.runs.fisher import squared_gradients
from clpapers.runs.images import Images
from clpapers.runs.learners import create
from clpapers.runs.scenario import scenario
from clpapers.streams.stream import data_of, load

seed, at, most = int(sys.argv[1]), *(map(int, sys.argv[2:] or (0, 0)))
cell = Plan("paper", all_papers()).cells["ea38ef3278"]
spec, (train, test) = cell.spec, (arrays.load(cell.dataset, split) for split in ("train", "test"))
data = loop.Data(train.x, train.y, test.x, test.y, 100)
stream = load(cell.stream(seed), len(train.y), data_of("cifar100", cell.dataset)[-1])
course = scenario(spec, stream, train.y, test.y, 100)
images = Images(data.train_x, spec["scaling"], torch.device("cpu"), torch.float32)
given = loop.setting_of(spec, data, [course], images)
learner = create(spec["learner"], given)
factor = spec["budget"]["learning_rate"] * learner.strength


def largest(fisher):
    value, name = max((each.max().item(), name) for each, (name, _) in zip(fisher, learner.net.named_parameters()))
    return f"{factor * value:.3g} in {name}"


for t in range(161 if not at else at + 101):
    if t == at if at else course.changes[t]:
        learner.task_change(t)
        print(f"step {t}: largest ε·λ·F {largest(learner.fisher)}")
        if at:
            stem, *others = learner.fisher
            learner.importance = [stem * (most / factor / stem.max()), *others]
        else:
            seen = given.items[0, given.step(t - 40).start : given.step(t - 1).stop]
            draw = torch.Generator().manual_seed(0)
            picks = (seen[torch.randperm(len(seen), generator=draw)[:8]][None] for _ in range(40))
            others = [max(f.max().item() for f in squared_gradients(learner.net, images(p))) for p in picks]
            print("  of 40 other batches of 8 of that chunk:", *(f"{factor * f:.3g}" for f in sorted(others)))
    now = given.step(t)
    seen = learner.observe(t, images(given.items[:, now]), given.labels[:, now])
    if at and t >= at and (t - at) % 5 == 0:
        away = max((p.detach() - c).abs().max().item() for p, c in zip(learner.net.parameters(), learner.centre))
        with torch.no_grad():
            right = (learner.net.eval()(images(given.items[:, :512])).argmax(dim=2) == given.labels[:, :512]).sum()
            learner.net.train()
        print(f"step {t}: loss {seen.loss.mean():.3f}; farthest weight {away:.3g}; {right} of the first 512 right")
