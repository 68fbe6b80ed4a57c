"""A fake of Athena that records its statements."""

from __future__ import annotations

from cdc_lake_tests.fakes.aws.glue import FakeGlue
from resources.glue.catalog import TableDefinition


class RecordingAthena:
    """Records views, and puts them into the catalog."""

    def __init__(self, glue: FakeGlue) -> None:
        self.glue = glue
        self.views: list[str] = []

    def execute(self, sql: str) -> None:
        """See Athena."""
        self.views.append(sql)
        self.glue.put_table(TableDefinition(sql.split('"')[1], sql.split('"')[3], "", (), table_type="VIRTUAL_VIEW"))
