"""Writing one Hudi table: the options file, the table's own keys, the checkpoint in the commit.

Here: what a write needs to say to Hudi. Not here: which rows (upsert.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from cdc_lake.contract.timeline import CHECKPOINT_KEY, Checkpoint

_OPTIONS = Path(__file__).with_name("hudi.properties")
_KEYGEN = "org.apache.hudi.keygen."
# A key is unique in the table, not in a partition: one whose partition column changes moves.
_ACROSS_PARTITIONS = {
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "true",
    # Releases differ in how they spell a single key of the complex generator; ours alone writes these tables.
    "hoodie.write.complex.keygen.validation.enable": "false",
}


@dataclass(frozen=True)
class HudiTable:
    """One table: its name, absolute URI, key columns, and the columns it is partitioned by (none is right)."""

    name: str
    uri: str
    key: Sequence[str]
    partition_by: Sequence[str] = ()

    def options(self, checkpoint: Checkpoint) -> dict[str, str]:
        """Everything that a write of this table passes to Hudi."""
        generator = "ComplexKeyGenerator" if self.partition_by else "NonpartitionedKeyGenerator"
        return {
            **properties(_OPTIONS.read_text()),
            **(_ACROSS_PARTITIONS if self.partition_by else {}),
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.recordkey.field": ",".join(self.key),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partition_by),
            "hoodie.datasource.write.keygenerator.class": f"{_KEYGEN}{generator}",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            CHECKPOINT_KEY: checkpoint.model_dump_json(),
        }

    def upsert(self, rows: DataFrame, checkpoint: Checkpoint) -> None:
        """Write rows and checkpoint in one commit: both or neither."""
        rows.write.format("hudi").options(**self.options(checkpoint)).mode("append").save(self.uri)


def properties(text: str) -> Mapping[str, str]:
    """The pairs of a properties file of this project: `key=value` lines and `#` comments only."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, value in pairs}
