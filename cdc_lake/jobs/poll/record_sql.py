"""Build SQL that makes PostgreSQL return a record's key and value as JSON text, as in Debezium's flattened JSON.

Spark copies these texts to Kafka unchanged, and jobs/apply/debezium_types.py parses them like Debezium's. The text of
each type must equal the one that Debezium writes with connectors/debezium-postgres.json. The tests
integration/chain/formats/test_types.py and integration/poll/test_polls.py decode both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column
from cdc_lake.contract.schema.transforms import RecordKey
from cdc_lake.contract.source.polled_rows import literal, quoted
from cdc_lake.jobs.apply.special_values import in_milliseconds

SESSION = (
    "set client_encoding to 'UTF8'",
    "set datestyle to 'ISO'",
    "set intervalstyle to 'postgres'",
    "set timezone to 'UTC'",
    "set extra_float_digits to 1",
    "set bytea_output to 'hex'",
    "set statement_timeout to 0",
    "set idle_in_transaction_session_timeout to 0",
    "set row_security to off",
)
"""The session settings that the texts depend on. With row_security off, a policy that hides rows causes an error."""
# In the templates, {0} is the value. Debezium writes the year 44 BC as -0043, as ISO 8601 does.
_YEAR = "extract(year from {0} at time zone 'UTC')::int"
_ZONED = (
    "to_json(case when isfinite({0}) then"
    f" case when {_YEAR} < 0 then '-' || lpad((-{_YEAR} - 1)::text, 4, '0')"
    f" else lpad({_YEAR}::text, greatest(4, length({_YEAR}::text)), '0') end"
    " || to_char({0} at time zone 'UTC', '-MM-DD\"T\"HH24:MI:SS.US\"Z\"') else ({0})::text end)"
)
_INTERVAL = (
    "to_json('P' || extract(year from {0}) || 'Y' || extract(month from {0}) || 'M' || extract(day from {0}) || 'DT' ||"
    " extract(hour from {0}) || 'H' || extract(minute from {0}) || 'M' ||"
    " trim_scale(extract(second from {0})::numeric) || 'S')"
)
_TEMPLATES = {
    "oid": "to_json({0}::bigint)",
    "numeric": "to_json({0}::text)",
    "money": "to_json({0}::numeric::text)",
    # Debezium's numbers for infinity, see jobs/apply/special_values.py.
    "date": "to_json(case when isfinite({0}) then {0} - date '1970-01-01'"
    " when {0} > date '1970-01-01' then 2146033979 when {0} < date '1970-01-01' then -622191234 end)",
    "timestamp with time zone": _ZONED,
    "time with time zone": "to_json(replace(({0} at time zone 'UTC')::text, '+00', 'Z'))",
    "interval": _INTERVAL,
    "bytea": "to_json(translate(encode({0}, 'base64'), E'\\n', ''))",
    "json": "to_json({0}::text)",
    "jsonb": "to_json({0}::text)",
    "hstore": "to_json(hstore_to_json({0})::text)",
}
_PLAIN = "to_json({0})"
_INFINITE_MICROS = "9223372036854775807", "-9223372036854775808"
_INFINITE_MILLIS = "9223372036825200000", "-9223372036832400000"
_ELEMENTS = {"oid": "{0}::bigint[]", "json": "{0}::text[]", "jsonb": "{0}::text[]"}


def key_sql(key: RecordKey, columns: Sequence[Column]) -> str:
    """Return the expression of a record's key over the rows `q`: a JSON object of the key's columns, or one value."""
    by_name = {column.name: column for column in columns}
    if key.alone:
        return _field(by_name[key.fields[0]])
    return _object([(name, _field(by_name[name])) for name in key.fields])


def value_sql(columns: Sequence[Column], event: Mapping[str, object]) -> str:
    """Return the expression of a record's value: the columns, and the fields of the event (see event_fields()).

    The values of hashed columns are in clear text: record_text.with_hashes() hashes them before they are sent.
    """
    own = [(column.name, _field(column)) for column in columns]
    return _object([*own, *((name, literal(json.dumps(value))) for name, value in event.items())])


def event_fields(database: str, table: str, number: int, at_ms: int) -> Mapping[str, object]:
    """Return Debezium's fields of a polled row; `table` is `schema.table` of the stream.

    `__lsn` is the poll's number, which orders the states of a row: a later poll read a newer state. The row counts as
    streamed, because it is newer than every row of an earlier poll.
    """
    schema, _, name = table.partition(".")
    fields = ("r", database, schema, name, number, None, "false", at_ms, "false")
    return dict(zip(EVENT_FIELDS, fields, strict=True))


def _object(fields: Sequence[tuple[str, str]]) -> str:
    parts = [f"{literal(json.dumps(name, ensure_ascii=False) + ':')} || {text}" for name, text in fields]
    return "'{' || " + " || ',' || ".join(parts) + " || '}'"


def _field(column: Column) -> str:
    constant = column.inserted if column.masked is None else column.masked.constant
    if constant is not None:
        return literal(json.dumps(constant, ensure_ascii=False))
    value = f"q.{quoted(column.source_name)}"
    if column.uncast is not None:
        value = f"({value}::{column.type})"
    return f"coalesce(({_template(column).replace('{0}', value)})::text, 'null')"


def _template(column: Column) -> str:
    if column.type.endswith("[]"):
        return _array(column.base.removesuffix("[]"))
    number = f"(extract(epoch from {{0}}) * {1_000 if in_milliseconds(column) else 1_000_000})::bigint"
    match column.base:
        case "timestamp without time zone":
            up, down = _INFINITE_MILLIS if in_milliseconds(column) else _INFINITE_MICROS
            epoch = "timestamp '1970-01-01'"
            infinite = f"when {{0}} > {epoch} then {up} when {{0}} < {epoch} then {down}"
            return f"to_json(case when isfinite({{0}}) then {number} {infinite} end)"
        case "time without time zone":
            return f"to_json({number})"
        case "bit" if column.lake_type == "boolean":
            return "to_json({0} = B'1')"
        case "bit":
            return _bits(column.arguments[0])
        case _:
            return _TEMPLATES.get(column.base, _PLAIN)


def _bits(length: int) -> str:
    """Return the template of a bit string: its bytes, the lowest first."""
    count = -(-length // 8)
    digits = f"substr(lpad({{0}}::text, {8 * count}, '0'), place * 8 + 1, 8)"
    one = f"set_byte('\\x00'::bytea, 0, {digits}::bit(8)::int)"
    octets = f"encode(string_agg({one}, ''::bytea order by place desc), 'base64')"
    return f"to_json((select {octets} from generate_series(0, {count - 1}) place where {{0}} is not null))"  # noqa: S608


def _array(kind: str) -> str:
    """Return the template of an array. An array with several dimensions becomes a dead letter, as with Debezium."""
    if kind == "timestamp with time zone":
        element = _ZONED.replace("{0}", "v")
        listed = f"select json_agg({element} order by place) from unnest({{0}}) with ordinality e(v, place)"  # noqa: S608
        text = f"coalesce(({listed}), '[]')"
    else:
        text = f"to_json({_ELEMENTS.get(kind, '{0}')})"
    return f"case when {{0}} is not null then case when array_ndims({{0}}) > 1 then '[null]' else {text} end end"
