"""The table of the desiderata that each target meets."""

from clpapers.config.plan import Plan
from clpapers.evidence.desiderata import DESIDERATA, declare


def table(plan: Plan) -> str:
    """A Markdown table of a plan's targets that have runs."""
    headings = " | ".join(f"{letter}: {meaning}" for letter, meaning in DESIDERATA.items())
    lines = [f"| target | {headings} |", "|---" * (1 + len(DESIDERATA)) + "|"]
    for name, target in plan.targets.items():
        met = declare(target, plan.datasets)
        lines += [f"| {name} | {' | '.join(met.values())} |"] if met else []
    return "\n".join(lines)
