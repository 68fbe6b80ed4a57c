"""`cdc-lake verify` while the source has 200 changes a second: it reports a real difference and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cdc_lake_tests.faults.background_traffic import traffic
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.verify import verify_actions
from cdc_lake_tests.faults.writers import writer_actions
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

RATE = 200.0
SEED = 4
SETTLED = 10500
"""An order that the traffic never changes (order_changes.py)."""


@pytest.fixture(scope="module")
def made(stack: NorthwindStack) -> Iterator[NorthwindStack]:
    """Return the stack with the sample's orders in the topic; no sensors run."""
    with stack.writer() as writer:
        writer.do(writer_actions.reset)
        writer.do(writer_actions.materialise, "source", "topic")
    yield stack
    with closing(stack.source()) as db, db, db.cursor() as cursor:
        cursor.execute("select datalake.refresh_cdc_events(array[%s])", (SETTLED,))


def verify(stack: NorthwindStack, *, clean: bool) -> dict[str, Any]:
    """Run `cdc-lake verify`, which lands and applies, and return its report of the table."""
    done = stack.cli.run("cdc-lake", "verify", writer_actions.PIPELINE, "--apply", "--json", timeout=1200, ok=False)
    assert done.returncode == (0 if clean else 1), f"{done.stdout}\n{done.stderr}"
    output: dict[str, Any] = json.loads(done.stdout)
    assert output["clean"] is clean
    (report,) = output["tables"].values()
    return dict(report)


@pytest.mark.timeout(3000)
def test_verify_reports_exactly_the_real_difference_under_load(made: NorthwindStack, count_trials: CountTrials) -> None:
    with traffic(made, RATE, SEED) as changing:
        report = verify(made, clean=True)
        with made.writer() as writer:
            checked = writer.do(verify_actions.applied, 60)
            writer.do(verify_actions.tamper, SETTLED, "shipped_date", "2001-02-03")
        found = verify(made, clean=False)
    assert [one["key"] for one in found["differences"]] == [{"order_id": str(SETTLED)}]
    (columns,) = (one["columns"] for one in found["differences"])
    assert list(columns) == ["shipped_date"]
    assert columns["shipped_date"][1] == "2001-02-03"
    # The check does not wait: keys with unapplied records are pending, all others are compared.
    assert not any(checked[fault] for fault in ("missing", "extra", "different", "doubled")), checked
    assert checked["pending"] > 0
    assert checked["compared"] > 80  # the traffic does not change every tenth order
    # Two cores run the source, the stream, Spark and perhaps the tests of another stack.
    assert changing.counts.rate > 0.5 * RATE, changing.counts
    assert report["resolved"] > 0, "nothing was written during the verification"
    count_trials("changes committed while verifying", changing.counts.changes)
    count_trials("changes a second while verifying", round(changing.counts.rate))
    count_trials("rows verified while the source was written", report["compared"])
    count_trials("keys resolved by the raw events", report["resolved"])
