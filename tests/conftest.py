"""What holds for all tests: no test fails for being slow, and tests/workflow carries its mark."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("clpapers", deadline=None)
settings.load_profile("clpapers")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent / "workflow"):
            item.add_marker(pytest.mark.workflow)
