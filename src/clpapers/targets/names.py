"""The names that a paper prints for factors, levels and metrics. Imports nothing heavy."""

from __future__ import annotations

OWN = "§"  # beside the name of a method from outside, which is in no paper


def named(target: dict, key: object) -> str:
    """The display name of a factor, level or metric: the target's `names`, or else the key itself."""
    return target.get("names", {}).get(key, str(key))
