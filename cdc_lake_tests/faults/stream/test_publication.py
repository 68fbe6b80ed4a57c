"""Another user alters the publication and reverts it: the loss of the unpublished changes is reported."""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 2


@pytest.mark.parametrize(
    ("fault", "repair", "message"),
    [
        (
            "alter publication {name} drop table {name}.goods",
            "alter publication {name} add table {name}.goods",
            "lacked {name}.goods for a while",
        ),
        (
            "drop publication {name}",
            "create publication {name} for table {name}.goods, {name}.cdc_heartbeat",
            "was dropped and re-created",
        ),
        (
            "alter publication {name} set (publish = 'insert')",
            "alter publication {name} set (publish = 'insert, update, delete')",
            "was altered",
        ),
    ],
    ids=["table_removed", "dropped", "narrowed"],
)
def test_a_publication_that_was_changed_and_changed_back_is_reported(
    pipeline: SmallPipeline, count_trials: CountTrials, fault: str, repair: str, message: str
) -> None:
    name = pipeline.loaded.name
    pipeline.stop_connector()
    pipeline.execute(fault.format(name=name))
    pipeline.change("lost", [pipeline.at_source()[0][0]])
    pipeline.execute(repair.format(name=name))
    with pytest.raises(ContractError, match=message.format(name=name)):
        pipeline.materialise("source", "topic")
    with pytest.raises(ContractError, match=f"cdc-lake resnapshot {name}"):
        pipeline.materialise("lake")
    pipeline.resnapshot()
    assert pipeline.in_lake() == pipeline.at_source()
    count_trials("losses of the source's stream, reported and repaired", 1)


def test_missing_heartbeats_report_unpublished_changes(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    """Landing does not connect to the source; it stops because the heartbeats in Kafka have a gap."""
    name = pipeline.loaded.name
    pipeline.land_and_compare()
    pipeline.execute(f"alter publication {name} set (publish = 'insert')")
    pipeline.change("lost", [pipeline.at_source()[0][0]])
    postgres = pipeline.loaded.source_postgres(pipeline.resources["postgres"])
    postgres.write_heartbeat(name)
    pipeline.execute(f"alter publication {name} set (publish = 'insert, update, delete')")
    pipeline.barrier()
    with pytest.raises(ContractError, match=r"heartbeats are missing between .*: WAL was skipped there"):
        pipeline.materialise("raw")
    pipeline.resnapshot()
    assert pipeline.in_lake() == pipeline.at_source()
    pipeline.land_and_compare()
    count_trials("losses of the source's stream, reported and repaired", 1)
