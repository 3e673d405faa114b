"""The workflow's small project, for tests of what is made of results."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "workflow"))
