"""The checkpoint stays in the timeline when Hudi's table services add commits and archive them."""

from __future__ import annotations

import json

import pytest

from cdc_lake.contract.table import timeline
from cdc_lake.jobs.hudi import writer
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable

BATCHES = 9
OFTEN = {
    "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "2",
}


def test_the_checkpoint_survives_archiving_cleaning_and_clustering(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = HudiTable.options
    monkeypatch.setattr(writer, "CLEAN_SECONDS", 0.0)
    monkeypatch.setattr(HudiTable, "options", lambda table: {**options(table), **OFTEN})
    table = new_table(COLUMNS, KEY)
    for number in range(1, BATCHES + 1):
        table.deliver([event(key, "u", 100 * number + key, note=str(number)) for key in range(5)])
        table.upsert()
        commit = timeline.last_commit(table.store, table.spec.prefix)
        assert commit is not None
        assert commit.checkpoint is not None
        assert commit.checkpoint.manifest == number
    folder = f"{table.spec.prefix}.hoodie/"
    names = [item.key.removeprefix(folder) for item in table.store.scan(folder)]
    commits = [name for name in names if name.endswith(".commit")]
    assert 0 < len(commits) < BATCHES, " ".join(names)  # the others are archived
    assert any(name.endswith(".clean") for name in names)
    clustered = [name for name in names if name.endswith(".replacecommit")]
    assert clustered
    for name in clustered:
        stored = table.store.get(f"{folder}{name}")
        assert stored is not None
        assert timeline.CHECKPOINT_KEY in json.loads(stored.body)["extraMetadata"]
    assert {row["note"] for row in table.by_hudi_rs()} == {str(BATCHES)}
