"""Hudi's options for the writes of a table.

The table's type, copy-on-write or merge-on-read, is that of its target in the YAML (pipeline/spec/target.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Literal

from cdc_lake.jobs.hudi.key_column import KEY_COLUMN

TableType = Literal["cow", "mor"]
"""Copy-on-write, or merge-on-read."""
OPTIONS = files("cdc_lake.jobs.hudi").joinpath("hudi.properties")
"""Read as a resource of the package, because on EMR the package is in an archive."""
_KEYGEN = "org.apache.hudi.keygen."
# A key is unique in the table, not in a partition: a row moves when its partition column changes.
_PARTITIONED = {
    "hoodie.index.type": "GLOBAL_BLOOM",
    "hoodie.bloom.index.update.partition.path": "true",
    # Hudi releases encode a single key of the complex generator differently; only one release writes these tables.
    "hoodie.write.complex.keygen.validation.enable": "false",
    # Encodes a slash, an equals sign or a percent sign in a value.
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}

_TYPES: Mapping[TableType, Mapping[str, str]] = {
    "cow": {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
    # A separate job merges the log files (jobs/maintenance/compact.py); it plans a compaction for one delta commit.
    "mor": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
        "hoodie.compact.inline.max.delta.commits": "1",
    },
}


def write_options(
    name: str, uri: str, partition_by: Sequence[str], table_type: TableType, history_hours: int
) -> dict[str, str]:
    """Return the options of each write of a table."""
    generator = "ComplexKeyGenerator" if partition_by else "NonpartitionedKeyGenerator"
    return {
        **properties(OPTIONS.read_text(encoding="utf-8")),
        **(_PARTITIONED if partition_by else {}),
        **_TYPES[table_type],
        "hoodie.cleaner.hours.retained": str(history_hours),
        "path": uri,
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": KEY_COLUMN,
        "hoodie.datasource.write.partitionpath.field": ",".join(partition_by),
        "hoodie.datasource.write.keygenerator.class": f"{_KEYGEN}{generator}",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }


def properties(text: str) -> Mapping[str, str]:
    """Parse a properties file that has only `key=value` lines and `#` comments."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, value in pairs}
