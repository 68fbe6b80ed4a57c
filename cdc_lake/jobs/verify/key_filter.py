"""Raw records narrowed to those of a few keys, before they are decoded: decoding is what costs.

The key's fields are read from a record as the texts that they are, and compared as texts. That is only right for types
that have one spelling each, so a key's other columns are not looked at; and a record whose key can't be read so (a
column had another name then, the record is no JSON) is kept. What is kept may be too much, never too little: the exact
match comes after decoding.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import TableSchema

_ONE_SPELLING = frozenset({"smallint", "integer", "bigint", "oid", "text", "character varying", "uuid"})


def filter_by_key(records: DataFrame, keys: DataFrame, schema: TableSchema) -> DataFrame:
    """The records that can be of these keys; `keys` has the key's columns under the names of compared_rows.names()."""
    fields = {
        f"c{number}": column.name
        for number, column in enumerate(schema.columns)
        if column.name in schema.key and column.base in _ONE_SPELLING
    }
    if not fields:
        return records
    wanted = keys.select(*(F.col(name).cast("string").alias(f"_k_{name}") for name in fields)).distinct()
    told = ", ".join(f"`{field}` string" for field in fields.values())
    marked = records.withColumn("_key", F.from_json(F.col("value").cast("string"), told))
    texts = {name: F.col("_key").getField(field) for name, field in fields.items()}
    alike = reduce(and_, [texts[name] == F.col(f"_k_{name}") for name in fields])
    unread = reduce(or_, [text.isNull() for text in texts.values()])
    joined = marked.join(F.broadcast(wanted.withColumn("_wanted", F.lit(True))), alike, "left")
    return joined.where(F.col("_wanted") | unread).select(*records.columns)
