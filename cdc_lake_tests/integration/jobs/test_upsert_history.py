"""The table equals the fold of the source's changes, whatever the delivery did (design, section 5)."""

from __future__ import annotations

from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.events import COLUMNS, KEY, Change, deliveries, fold, held, histories
from cdc_lake_tests.integration.jobs.tables import LakeTable
from cdc_lake_tests.tried import Tried

KEYS = 200


# One table holds many independent histories, so that a write of seconds tries them all; Hypothesis draws the seed
# and how they are delivered. No shrinking: it would write tables for minutes, and one wrong key says enough.
@given(seed=st.integers(0, 2**32 - 1), batches=st.integers(2, 3), repeated=st.sampled_from([0.0, 0.3, 0.7]))
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_the_table_is_the_fold_after_every_batch(
    new_table: NewTable, tried: Tried, seed: int, batches: int, repeated: float
) -> None:
    dice = Random(seed)
    told = histories(dice, KEYS)
    table = new_table(COLUMNS, KEY)
    delivered: list[Change] = []
    for batch in deliveries(dice, told, batches, repeated):
        deliver(table, batch)
        report = table.upsert()
        delivered.extend(batch)
        assert report.events == len(batch)
        assert report.dead_letters == 0
        assert held(table.by_hudi_rs()) == fold(delivered)
    assert held(table.by_spark()) == fold(delivered) == fold(change for history in told for change in history)
    tried("histories of a key, folded and compared", len(told))
    tried("changes delivered, duplicates included", len(delivered))
    tried("batches upserted and compared", batches)


def deliver(table: LakeTable, batch: list[Change]) -> None:
    """Land a batch; changes of different epochs come in manifests of their own."""
    for epoch in (1, 0):
        changes = [change.event for change in batch if change.epoch == epoch]
        if changes:
            table.deliver(changes, epoch)
