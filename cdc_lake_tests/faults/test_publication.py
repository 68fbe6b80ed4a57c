"""The publication is changed behind the pipeline's back: what was not published meanwhile is lost, and that is told."""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.trial_counts import Tried


@pytest.mark.parametrize(
    ("fault", "repair", "said"),
    [
        (
            "alter publication {name} drop table {name}.goods",
            "alter publication {name} add table {name}.goods",
            "was without {name}.goods for a while",
        ),
        (
            "drop publication {name}",
            "create publication {name} for table {name}.goods, {name}.cdc_heartbeat",
            "was dropped and made again",
        ),
        (
            "alter publication {name} set (publish = 'insert')",
            "alter publication {name} set (publish = 'insert, update, delete')",
            "was altered",
        ),
    ],
    ids=["table_removed", "dropped", "narrowed"],
)
def test_changed_and_changed_back(stall: Stall, tried: Tried, fault: str, repair: str, said: str) -> None:
    name = stall.flow.name
    stall.stop_connector()
    stall.execute(fault.format(name=name))
    stall.change("lost", [stall.at_source()[0][0]])
    stall.execute(repair.format(name=name))
    with pytest.raises(ContractError, match=said.format(name=name)):
        stall.materialise("source", "topic")
    with pytest.raises(ContractError, match=f"cdc-lake resnapshot {name}"):
        stall.materialise("lake")
    stall.resnapshot()
    assert stall.in_lake() == stall.at_source()
    tried("losses of the source's stream, each told and mended", 1)


def test_beats_tell_of_what_was_not_published(stall: Stall, tried: Tried) -> None:
    """Landing has no way to the source, and stops all the same: the heartbeats in Kafka have a gap."""
    name = stall.flow.name
    stall.carry()
    stall.execute(f"alter publication {name} set (publish = 'insert')")
    stall.change("lost", [stall.at_source()[0][0]])
    postgres = stall.flow.at_source(stall.resources["postgres"])
    postgres.beat(name)
    stall.execute(f"alter publication {name} set (publish = 'insert, update, delete')")
    stall.barrier()
    with pytest.raises(ContractError, match=r"heartbeats are missing between .*: WAL was skipped there"):
        stall.materialise("raw")
    stall.resnapshot()
    assert stall.in_lake() == stall.at_source()
    stall.carry()
    tried("losses of the source's stream, each told and mended", 1)
