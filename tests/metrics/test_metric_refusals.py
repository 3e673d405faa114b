"""Refusals of metrics, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import numpy as np
import refusals
from test_lifelong import RUN
from test_measures import NET
from test_streaming import BETTER, EVENTS, RANDOM, measured, run

from clpapers.metrics import accuracy, architecture, lifelong, streaming
from clpapers.metrics.class_frequency import class_frequency

BLANK = EVENTS | {"correct": [[0, 0, 0], *BETTER["correct"][1:]]}

test_refused, test_unedited = refusals.tests("metrics", globals())
