"""The tiny problem of the runs' tests, for the methods in examples/."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))  # of tiny
