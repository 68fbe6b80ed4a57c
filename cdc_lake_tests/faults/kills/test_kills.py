"""kill -9 of all processes at random times while the source is written: no row is lost or doubled."""

from __future__ import annotations

import os
import random

import pytest

from cdc_lake_tests.faults.kills import kill_campaign
from cdc_lake_tests.faults.kills.campaign_sizes import (
    EVERY_SECONDS,
    KILLS,
    MODE,
    PAUSE_AFTER,
    RATE,
    RECORD,
    REPEATED_BY,
    SEED,
)
from cdc_lake_tests.faults.kills.kill_plan import plan, targets
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.writers import writer_actions
from cdc_lake_tests.pytest_hooks.seeds import named_in_failures
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials


@pytest.mark.timeout(3600)
def test_random_kills_under_traffic_lose_and_double_no_row(
    stack: NorthwindStack, count_trials: CountTrials, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))

    RECORD.parent.mkdir(exist_ok=True)

    def report(text: str) -> None:
        with capsys.disabled():
            print(text, flush=True)
        with RECORD.open("a", encoding="utf-8") as record:
            print(text, file=record)

    report(f"random kills in {MODE} mode with seed {seed}; {REPEATED_BY}={seed} repeats them")
    with stack.writer() as writer:
        writer.do(writer_actions.reset)
    with named_in_failures(REPEATED_BY, seed):
        kills = plan(seed, EVERY_SECONDS, MODE)
        result = kill_campaign.run(
            stack, seed, kills, lambda killed: killed >= KILLS, RATE, report, PAUSE_AFTER, MODE, targets(MODE)
        )
    for line in result.lines():
        report(line)
    count_trials("random kills", sum(result.kills.values()))
    count_trials("changes committed around random kills", result.traffic.changes)
    count_trials("rows verified after random kills", result.verified["compared"])
