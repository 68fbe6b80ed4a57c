"""kill -9 of everything there is, at random times, while the source is written: nothing lost, nothing doubled."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from cdc_lake_tests.faults import kill_campaign, writer_actions
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.kill_plan import TARGETS, plan
from cdc_lake_tests.long_test_sizes import size
from cdc_lake_tests.seeds import named_in_failures
from cdc_lake_tests.trial_counts import Tried

SEED = "CDC_LAKE_FAULTS_SEED"
KILLS = size(in_ci=2 * len(TARGETS), full=51)
"""In CI two whole rounds: more where a target was not there in its turns."""
EVERY_SECONDS = 7.0
RATE = 50.0
REST_AFTER = 17
"""Two rests: each takes minutes, for runs that failed are begun again ever later."""


@pytest.mark.timeout(3600)
def test_kills_under_traffic(bench: Bench, tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))

    def say(text: str) -> None:
        with capsys.disabled():
            print(text, flush=True)

    say(f"\nrandom kills with seed {seed}; {SEED}={seed} repeats them")
    with bench.writer() as writer:
        writer.do(writer_actions.reset)
    with named_in_failures(SEED, seed):
        figures = kill_campaign.run(bench, seed, plan(seed, EVERY_SECONDS), enough, RATE, say, REST_AFTER)
    for line in figures.lines():
        say(line)
    tried("random kills", sum(figures.kills.values()))
    tried("changes committed around random kills", figures.traffic.changes)
    tried("rows lost, by verify after random kills", figures.verified["missing"])
    tried("rows doubled, by verify after random kills", figures.verified["doubled"])


def enough(kills: Counter[str]) -> bool:
    """Whether there were as many kills as are wanted, and each target was hit."""
    return kills.total() >= KILLS and set(kills) == set(TARGETS)
