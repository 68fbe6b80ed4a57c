"""The sizes of the campaigns of random kills, and where they are recorded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import get_args

from cdc_lake.pipeline.spec.pipeline import Mode
from cdc_lake_tests.faults.kills.kill_plan import targets
from cdc_lake_tests.pytest_hooks.long_test_sizes import SEED_VARIABLE, seed, size

SEED = "CDC_LAKE_FAULTS_SEED"
MODE, MERGE_ON_READ_MODE = random.Random(seed()).sample(get_args(Mode), 2)
"""The modes of the campaign with a copy-on-write target only, and of the one with a merge-on-read target too, which
only a full run has. CDC_LAKE_SEED decides which is which."""
REPEATED_BY = f"{SEED_VARIABLE}={seed()} {SEED}"
"""The variables that repeat a campaign: the first decides its mode, the second, which a seed follows, its kills."""
KILLS = size(in_ci=len(targets("triggered")), full=26)
"""The minimum number of kills of a campaign: in CI one round of targets, in a full run more than two."""
EVERY_SECONDS = 7.0
"""The average time between kills."""
RATE = 25.0
"""Changes per second. A higher rate takes processor time from the processes under test."""
RECORD = Path("build/random_kills.txt")
"""Seed, log and result of the campaigns. The output of pytest-xdist's workers is lost, so .ci/run prints this file."""
PAUSE_AFTER = size(in_ci=6, full=10)
"""The number of kills after which there is a pause until the lake has a new commit. A campaign has at least one, and
not many: each takes minutes, since failed runs are retried with growing delays."""
