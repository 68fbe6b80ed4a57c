"""The sizes of the campaigns of random kills, and where they are recorded."""

from __future__ import annotations

from pathlib import Path

from cdc_lake_tests.faults.kills.kill_plan import targets
from cdc_lake_tests.pytest_hooks.long_test_sizes import size

SEED = "CDC_LAKE_FAULTS_SEED"
KILLS = size(in_ci=len(targets("triggered")), full=19)
"""The minimum number of kills: in CI one round of targets, in a full run almost two rounds in each mode."""
MERGE_ON_READ_KILLS = 13
"""The minimum number in the campaign with a merge-on-read target, which only a full run has: more than one round.
Together with KILLS in each mode, a full run has at least 51."""
EVERY_SECONDS = 7.0
"""The average time between kills."""
RATE = 25.0
"""Changes per second. A higher rate takes processor time from the processes under test."""
RECORD = Path("build/random_kills.txt")
"""Seed, log and result of the campaigns. The output of pytest-xdist's workers is lost, so .ci/run prints this file."""
PAUSE_AFTER = size(in_ci=6, full=10)
"""The number of kills after which there is a pause until the lake has a new commit. A campaign has at least one, and
not many: each takes minutes, since failed runs are retried with growing delays."""
