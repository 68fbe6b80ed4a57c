"""Build key and value of delete records from rows of the lake: the inverse of jobs/apply/debezium_types.py."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.sent_columns import SentColumn
from cdc_lake.contract.schema.transforms import RecordKey
from cdc_lake.jobs.apply.special_values import in_milliseconds

_BARE = frozenset({"int", "bigint", "boolean"})


def record_key(key: RecordKey, columns: Sequence[SentColumn]) -> SparkColumn:
    """Return a record's key from the columns of the lake; the text equals that of record_sql.key_sql()."""
    by_name = {each.sent.name: each for each in columns}
    if key.alone:
        return _field(by_name[key.fields[0]])
    return _object([(name, _field(by_name[name])) for name in key.fields])


def record_value(
    columns: Sequence[SentColumn], event: Mapping[str, object], table_columns: Collection[str]
) -> SparkColumn:
    """Return a record's value: the row's last values, and the fields of the event.

    `table_columns` are the columns of the lake table; a column that it does not have yet is NULL.
    """
    own = [
        (each.sent.name, _field(each) if each.lake.name.lower() in table_columns else F.lit("null")) for each in columns
    ]
    return _object([*own, *((name, F.lit(json.dumps(value))) for name, value in event.items())])


def _object(fields: Sequence[tuple[str, SparkColumn]]) -> SparkColumn:
    members = (F.concat(F.lit(json.dumps(name, ensure_ascii=False) + ":"), text) for name, text in fields)
    return F.concat(F.lit("{"), F.concat_ws(",", *members), F.lit("}"))


def _field(column: SentColumn) -> SparkColumn:
    value = F.col(column.lake.name.lower())
    if column.sent.lake_type != column.lake.lake_type:  # landing casts it
        value = value.cast(column.sent.lake_type)
    return F.coalesce(_json(column.sent, value), F.lit("null"))


def _json(column: Column, value: SparkColumn) -> SparkColumn:
    unit = 1000 if in_milliseconds(column) else 1
    text = value.cast("string")
    match column.base:
        case base if base.endswith("[]") or column.lake_type in _BARE:
            found = _whole(value, unit) if base == "time without time zone" else text
        case "date":
            found = F.datediff(value, F.lit("1970-01-01").cast("date")).cast("string")
        case "timestamp without time zone":
            found = _whole(F.unix_micros(value), unit)
        case "timestamp with time zone":
            found = _quoted(F.concat(F.translate(text, " ", "T"), F.lit("Z")))
        case "bytea":
            found = _quoted(_base64(value))
        case "bit":
            found = _quoted(_bits(value, column.arguments[0]))
        case _:
            found = _quoted(text)
    return found


def _whole(micros: SparkColumn, unit: int) -> SparkColumn:
    return F.floor(micros / F.lit(unit)).cast("string") if unit > 1 else micros.cast("string")


def _base64(value: SparkColumn) -> SparkColumn:
    return F.regexp_replace(F.base64(value), r"\s", "")  # Spark inserts line breaks


def _bits(digits: SparkColumn, length: int) -> SparkColumn:
    """Return the bytes of a bit string, the lowest first."""
    count = -(-length // 8)
    padded = F.lpad(digits, 8 * count, "0")
    octets = [F.lpad(F.conv(padded.substr(8 * n + 1, 8), 2, 16), 2, "0") for n in reversed(range(count))]
    return _base64(F.unhex(F.concat(*octets)))


def _quoted(text: SparkColumn) -> SparkColumn:
    """Return a text as JSON; NULL stays NULL."""
    listed = F.to_json(F.array(text))
    return F.when(text.isNotNull(), listed.substr(F.lit(2), F.length(listed) - 2))
