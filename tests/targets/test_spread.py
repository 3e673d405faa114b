"""Few runs as dots, more as intervals that end where the metric can be no lower or higher."""

# ruff: noqa: F401, names that by_hand.yaml uses
import by_hand
import numpy as np
import pandas as pd

from clpapers.targets.spread import ends, few, whiskers

test_by_hand = by_hand.tests(globals())
