"""`cdc-lake verify` while the source is written at 200 changes a second: clean when all is well, and never fooled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cdc_lake_tests.faults import verify_actions, writer_actions
from cdc_lake_tests.faults.background_traffic import traffic
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.trial_counts import Tried

RATE = 200.0
SEED = 4
SETTLED = 10500
"""An order that the traffic never changes (order_changes.py)."""


@pytest.fixture(scope="module")
def made(bench: Bench) -> Iterator[Bench]:
    """The pipeline, with the sample's orders in the topic; no sensors."""
    with bench.writer() as writer:
        writer.do(writer_actions.reset)
        writer.do(writer_actions.materialise, "source", "topic")
    verify(bench, clean=True)
    yield bench
    with closing(bench.source()) as db, db, db.cursor() as cursor:
        cursor.execute("select datalake.refresh_cdc_events(array[%s])", (SETTLED,))


def verify(bench: Bench, *, clean: bool) -> dict[str, Any]:
    """What the command says of the one table; it lands and applies by itself."""
    done = bench.cli.run("cdc-lake", "verify", writer_actions.PIPELINE, "--apply", "--json", timeout=1200, ok=False)
    assert done.returncode == (0 if clean else 1), f"{done.stdout}\n{done.stderr}"
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["clean"] is clean
    (report,) = said["tables"].values()
    return dict(report)


@pytest.mark.timeout(3000)
def test_verify_while_the_source_is_written(made: Bench, tried: Tried) -> None:
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
    # The check waits for nobody: what is on its way is set aside, and everything else is judged.
    assert not any(checked[fault] for fault in ("missing", "extra", "different", "doubled")), checked
    assert checked["pending"] > 0
    assert checked["compared"] > 80  # every tenth order is left alone
    # Two cores run the source, the stream, Spark and maybe another stack's tests besides.
    assert changing.counts.rate > 0.5 * RATE, changing.counts
    assert report["resolved"] > 0, "nothing was written while it verified"
    tried("changes committed while verifying", changing.counts.changes)
    tried("changes a second while verifying", round(changing.counts.rate))
    tried("rows verified while the source was written", report["compared"])
    tried("keys resolved by the raw events", report["resolved"])
