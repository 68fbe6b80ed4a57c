"""Filter parsed records by key before they are decoded, because decoding is expensive.

The key's fields are compared as texts. This is correct only for types with one text per value,
so key columns of other types are ignored. A record whose key cannot be read (a column had another name, or the record
is not JSON) is kept. The filter may keep too many records, but never too few: keys are matched exactly after decoding.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.jobs.apply.record_fields import field_text

_ONE_TEXT_PER_VALUE = frozenset({"smallint", "integer", "bigint", "oid", "text", "character varying", "uuid"})


def filter_by_key(records: DataFrame, keys: DataFrame, schema: TableSchema) -> DataFrame:
    """Return the records that may have one of these keys; `keys` has the column names of compared_rows.names()."""
    fields = {
        f"c{number}": column.name
        for number, column in enumerate(schema.columns)
        if column.name in schema.key and column.base in _ONE_TEXT_PER_VALUE
    }
    if not fields:
        return records
    wanted = keys.select(*(F.col(name).cast("string").alias(f"_k_{name}") for name in fields)).distinct()
    texts = {name: field_text(field) for name, field in fields.items()}
    same_key = reduce(and_, [texts[name] == F.col(f"_k_{name}") for name in fields])
    unreadable = reduce(or_, [text.isNull() for text in texts.values()])
    joined = records.join(F.broadcast(wanted.withColumn("_wanted", F.lit(True))), same_key, "left")
    return joined.where(F.col("_wanted") | unreadable).select(*records.columns)
