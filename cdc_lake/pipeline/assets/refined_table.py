"""Build a refined table: a dataset that is written as partitioned Parquet files, behind a view of the dataset's name.

A build is a new table, `<dataset>__<build id>`, at a new location. Then one statement points the view to it, so that a
reader gets either the previous build or the new one. A build that fails changes nothing. Earlier builds are deleted an
hour after the first run that finds them replaced, because queries may still read them.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.dataset import DatasetSpec
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog

MAX_PARTITIONS_PER_STATEMENT = 100
"""The maximum number of partitions that a CTAS or INSERT INTO can write:
https://docs.aws.amazon.com/athena/latest/ug/ctas-insert-into.html."""
REPLACED_BUILDS = "seen"
"""The field of a refined table's stored state: for each build that was replaced, the time at which that was found."""
RETENTION_SECONDS = 3600.0
"""The time after which a replaced build is deleted."""
_STAGED = "staged"
_GROUP = "__group"
_BUILD_ID = r"\d{14}[0-9a-f]{6}"
_BUILD = re.compile(rf"(?P<name>[a-z0-9_]+?)__(?P<build>{_BUILD_ID})(?:_{_STAGED})?")


@dataclass(frozen=True)
class Build:
    """A finished build: its id, and the number of its partitions and of the statements that wrote them."""

    id: str
    partitions: int
    statements: int


@dataclass(frozen=True)
class RefinedTable:
    """The refined table of a dataset; `sql` is its SELECT, and `store` accesses the bucket named `bucket`."""

    pipeline: Pipeline
    dataset: DatasetSpec
    sql: str
    athena: Athena
    glue: GlueCatalog
    store: ObjectStore
    bucket: str

    def build(self, check: Callable[[], None]) -> Build:
        """Write a new build, and point the view to it after calling `check`, which raises LeaseLostError.

        Raises ContractError for partition columns that the SELECT does not have, and AthenaQueryFailed.
        """
        names = [name for name, _ in self.athena.query(f"SELECT * FROM ({self.sql}) LIMIT 0").columns]  # noqa: S608 - the dataset's own SQL
        keys = self.dataset.partition_by
        self._require_columns(names)
        build = f"{datetime.now(UTC):%Y%m%d%H%M%S}{uuid.uuid4().hex[:6]}"
        count = self._count() if keys else 0
        if count > MAX_PARTITIONS_PER_STATEMENT:
            statements = self._write_staged(build, names)
        else:
            self.athena.execute(self._create(build, self._ordered(names), f"({self.sql})"))
            statements = 1
        failpoints.reached("refined.before_view")
        check()  # the view of a run that was paused would replace that of a newer build
        columns = ", ".join(f'"{name}"' for name in names)
        self.athena.execute(
            f'CREATE OR REPLACE VIEW "{self.pipeline.catalog}"."{self.dataset.name}" AS '  # noqa: S608 - checked identifiers
            f"SELECT {columns} FROM {self._table(build)}"
        )
        failpoints.reached("refined.after_view")
        return Build(build, count, statements)

    def build_of_view(self) -> str:
        """Return the id of the build that the view reads; empty if there is no view, or its build has no table."""
        sql = self.glue.view_sql(self.pipeline.catalog, self.dataset.name) or ""
        found = re.search(rf"\b{self.dataset.name}__({_BUILD_ID})\b", sql)
        return found[1] if found and self._exists(found[1]) else ""

    def _exists(self, build: str) -> bool:
        return self.glue.get_table(self.pipeline.catalog, f"{self.dataset.name}__{build}") is not None

    def delete_earlier(self, current: str, seen: dict[str, float]) -> dict[str, float]:
        """Delete builds that were replaced or failed more than RETENTION_SECONDS ago; return those that are kept.

        `seen` and the result map each of these builds to the time at which a run first found it, in seconds since 1970.
        """
        now = time.time()
        found = {build for build in self._builds() if build != current}
        kept = {build: seen.get(build, now) for build in found}
        expired = {build for build, at in kept.items() if at <= now - RETENTION_SECONDS}
        for build in sorted(expired):
            self._delete(build)
        return {build: at for build, at in kept.items() if build not in expired}

    def _require_columns(self, names: Sequence[str]) -> None:
        keys = self.dataset.partition_by
        missing = [name for name in keys if name not in names]
        where = f"{self.pipeline.folder / 'defs.yaml'} is not valid: datasets: {self.dataset.sql}: partition_by"
        if missing:
            raise ContractError(
                f"{where}: the SELECT has no column {', '.join(missing)}. Its columns are {', '.join(names)}."
            )
        if len(keys) == len(names):
            raise ContractError(f"{where}: all columns are partition columns. Leave out at least one.")

    def _count(self) -> int:
        keys = ", ".join(f'"{name}"' for name in self.dataset.partition_by)
        counted = self.athena.query(f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM ({self.sql}))")  # noqa: S608
        return int(counted.rows[0][0])

    def _write_staged(self, build: str, names: Sequence[str]) -> int:
        """Write more partitions than one statement can; return the number of statements that wrote partitions.

        One statement stages the rows first, so that all partitions show the same state of the lake.
        """
        keys = ", ".join(f'"{name}"' for name in self.dataset.partition_by)
        group = f'(dense_rank() OVER (ORDER BY {keys}) - 1) / {MAX_PARTITIONS_PER_STATEMENT} AS "{_GROUP}"'
        staged = f"{build}_{_STAGED}"
        rows = f"SELECT *, {group} FROM ({self.sql})"  # noqa: S608
        self.athena.execute(f"CREATE TABLE {self._table(staged)} WITH ({self._properties(staged)}) AS {rows}")
        # The SELECT may have no row any more since the partitions were counted; the build is then an empty table.
        counted = self.athena.query(f'SELECT coalesce(max("{_GROUP}"), 0) + 1 FROM {self._table(staged)}')  # noqa: S608
        groups = int(counted.rows[0][0])
        columns = self._ordered(names)
        for number in range(groups):
            failpoints.reached("refined.before_group")
            source = f'(SELECT * FROM {self._table(staged)} WHERE "{_GROUP}" = {number})'  # noqa: S608
            if number == 0:
                self.athena.execute(self._create(build, columns, source))
            else:
                self.athena.execute(f"INSERT INTO {self._table(build)} SELECT {columns} FROM {source}")  # noqa: S608
        self._drop(staged)
        return groups

    def _ordered(self, names: Sequence[str]) -> str:
        """Return the columns with the partition columns last, where Athena requires them."""
        keys = self.dataset.partition_by
        return ", ".join(f'"{name}"' for name in [*(name for name in names if name not in keys), *keys])

    def _create(self, build: str, columns: str, source: str) -> str:
        keys = ", ".join(f"'{name}'" for name in self.dataset.partition_by)
        partitioned = f", partitioned_by = ARRAY[{keys}]" if keys else ""
        return (
            f"CREATE TABLE {self._table(build)} WITH ({self._properties(build)}{partitioned}) "  # noqa: S608
            f"AS SELECT {columns} FROM {source}"
        )

    def _properties(self, build: str) -> str:
        location = f"s3://{self.bucket}/{object_names.refined_prefix(self.pipeline.name, self.dataset.name, build)}"
        return f"format = 'PARQUET', write_compression = 'SNAPPY', external_location = '{location}'"

    def _table(self, build: str) -> str:
        return f'"{self.pipeline.catalog}"."{self.dataset.name}__{build}"'

    def _builds(self) -> set[str]:
        """Return the ids of all builds that have a table or objects; a killed statement leaves objects only."""
        matches = map(_BUILD.fullmatch, self.glue.table_names(self.pipeline.catalog))
        found = {match["build"] for match in matches if match is not None and match["name"] == self.dataset.name}
        prefix = object_names.refined_prefix(self.pipeline.name, self.dataset.name)
        folders = {item.key.removeprefix(prefix).partition("/")[0] for item in self.store.scan(prefix)}
        return found | {folder.removesuffix(f"_{_STAGED}") for folder in folders}

    def _delete(self, build: str) -> None:
        for each in (build, f"{build}_{_STAGED}"):
            self._drop(each)

    def _drop(self, build: str) -> None:
        """Delete a build's table, and then its objects."""
        self.glue.delete_table(self.pipeline.catalog, f"{self.dataset.name}__{build}")
        prefix = object_names.refined_prefix(self.pipeline.name, self.dataset.name, build)
        self.store.delete(item.key for item in self.store.scan(prefix))


def catalog_names(pipeline: Pipeline, glue: GlueCatalog) -> list[str]:
    """Return the names of a pipeline's datasets in the catalog: views, and the builds of refined tables."""
    names = [dataset.name for dataset in pipeline.spec.datasets]
    # Also builds of a dataset that is a view by now.
    tables = glue.table_names(pipeline.catalog) if names else []
    builds = ((name, _BUILD.fullmatch(name)) for name in tables)
    return [*names, *(name for name, match in builds if match is not None and match["name"] in names)]
