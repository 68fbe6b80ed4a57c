"""kill -9 of all processes at random times, with a copy-on-write and a merge-on-read target that is compacted often.

The campaign is that of `make soak ARGS=--merge-on-read`, in the mode that test_kills.py does not use.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys

import pytest

from cdc_lake_tests.faults.kills.campaign_sizes import (
    EVERY_SECONDS,
    KILLS,
    MERGE_ON_READ_MODE,
    PAUSE_AFTER,
    RATE,
    RECORD,
    REPEATED_BY,
    SEED,
)
from cdc_lake_tests.faults.kills.soak import MERGE_ON_READ
from cdc_lake_tests.helpers.project_copy import ROOT
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only
from cdc_lake_tests.pytest_hooks.seeds import named_in_failures
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials


@full_only
@pytest.mark.timeout(3600)
def test_random_kills_lose_and_double_no_row_of_a_merge_on_read_table(count_trials: CountTrials) -> None:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
    sizes = {
        "minutes": 0,
        "kills": KILLS,
        "every": EVERY_SECONDS,
        "rate": RATE,
        "pause-after": PAUSE_AFTER,
    }
    options = [f"--{name}={value}" for name, value in {**sizes, "mode": MERGE_ON_READ_MODE, "seed": seed}.items()]
    command = [sys.executable, "-m", "cdc_lake_tests.faults.kills.soak", MERGE_ON_READ, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3500, check=False)
    RECORD.parent.mkdir(exist_ok=True)
    with RECORD.open("a", encoding="utf-8") as record:
        record.write(done.stdout)
    with named_in_failures(REPEATED_BY, seed):
        assert done.returncode == 0, done.stdout + done.stderr
        kills, compactions = (re.search(rf"(\d+) {what}", done.stdout) for what in ("kills:", "compactions"))
        assert kills, done.stdout
        assert compactions, done.stdout
    count_trials("random kills", int(kills[1]))
    count_trials("compactions around random kills", int(compactions[1]))
