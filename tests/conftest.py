"""Rules for all tests: none fails for being slow; slow ones, the workflow's and the walk's carry their marks."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ("browsing", "rendering", "world.folders")
# Where it is set, as in images of containers, each process would compile anew all that it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A background job of a shell ignores it, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[1:] = sys.argv[1:] or ["tests"]  # records tell of the command; a worker of pytest-xdist has none
TESTS = Path(__file__).parent
# Whole files, by pytest's --durations: three quarters of the time of all tests outside workflow/.
SLOW = [
    "datasets/test_features.py", "datasets/test_weights.py", "audit/test_audit.py", "audit/test_lineage.py",
    "report/test_publish.py", "report/test_results.py", "report/test_site.py", "report/test_tour.py",
    "builds/test_verify.py", "runs/evaluation/test_tasks.py", "runs/test_cuda_graphs.py", "runs/test_checkpoint.py",
    "runs/test_cn_dpm.py", "runs/test_heads.py", "runs/test_loop.py", "runs/test_memory_exhausted.py",
    "runs/test_offline.py", "runs/test_prog_nn.py", "runs/test_fisher.py", "runs/test_resnet18.py",
    "runs/test_shared_gans.py", "runs/test_vcl.py", "runs/test_vgr.py",
    "evidence/test_claims_table.py", "targets/test_figures.py", "budget/test_priority.py",
    "config/test_config_properties.py", "config/test_origins.py", "config/test_own_plans.py",
    "archive/test_imported.py", "test_rules_acceptance.py",
]  # fmt: skip

settings.register_profile("clpapers", deadline=None)
settings.load_profile("clpapers")


def pytest_configure():
    """A file that is renamed keeps its mark only if it is renamed here too."""
    gone = [name for name in SLOW if not (TESTS / name).is_file()]
    if gone:
        raise pytest.UsageError(f"{__file__}: SLOW: no such file: {', '.join(gone)}")


def pytest_collection_modifyitems(items):
    for item in items:
        name = item.path.relative_to(TESTS).as_posix()
        if name.startswith(("workflow/", "walk/")):
            item.add_marker(name.partition("/")[0])
        elif "finished" in item.fixturenames:  # which Snakemake builds
            item.add_marker("workflow")
        elif name in SLOW:
            item.add_marker(pytest.mark.slow)
