"""Build the SELECT of typed rows over a catalog table of JSON objects, whose columns are the fields of the records.

A record is Debezium's flattened JSON, byte for byte. The SELECT converts its texts and numbers as decode.py does, and
has the columns that a table of Parquet objects has, so that latest_rows.py works on both. It exists in two dialects:
Athena's for the view, and Spark's, with which verify reads the same objects. The records were decoded when they were
landed, so a conversion cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from cdc_lake.contract.objects.parquet_file import EPOCH, OFFSET, UNCHANGED
from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column, TableSchema
from cdc_lake.contract.schema.evolution import match_columns
from cdc_lake.contract.schema.value_rules import PLACEHOLDER, ValueRules
from cdc_lake.contract.table import latest_rows
from cdc_lake.contract.table.event_order import Position
from cdc_lake.jobs.apply import special_values
from cdc_lake.jobs.apply.debezium_types import SPECIAL_NUMBERS, placeholders, toastable
from cdc_lake.jobs.apply.json_fields import NUMBERS, field_type
from cdc_lake.jobs.apply.special_values import in_milliseconds

Dialect = Literal["spark", "athena"]
_ROWS = "typed_rows"
_SMALL_NUMBER = "^(-?)([0-9])[.]?([0-9]*)E-([0-9]+)$"
"""A number that Java writes with an exponent, see debezium_types.py."""
# Templates of conversions: {0} is the field, {1} the argument that the type needs.
_DATE = {"spark": "date_add(DATE '1970-01-01', {0})", "athena": "date_add('day', {0}, DATE '1970-01-01')"}
_TIMESTAMP = {
    "spark": "timestamp_micros({0} * {1})",
    # Not date_add(), whose number of milliseconds is an integer of 32 bits.
    "athena": "TIMESTAMP '1970-01-01 00:00:00.000' + ({0} * {1} / 1000) * INTERVAL '0.001' SECOND",
}
_ZONED = {
    "spark": "TRY_CAST({0} AS TIMESTAMP)",
    # Not from_iso8601_timestamp(), which rejects years before 1 and after 9999. The texts are in UTC.
    "athena": "TRY_CAST(replace(replace({0}, 'T', ' '), 'Z') AS TIMESTAMP(3))",
}
_BINARY = {"spark": "unbase64({0})", "athena": "from_base64({0})"}
_ARRAY = {"spark": "array({0})", "athena": "ARRAY[{0}]"}
_TEXT = {"spark": "STRING", "athena": "VARCHAR"}
_TEXTS = {"spark": "ARRAY<STRING>", "athena": "ARRAY(VARCHAR)"}


def latest_sql(
    versions: Sequence[TableSchema],
    relation: str,
    boundary: str,
    rules: ValueRules,
    dialect: Dialect,
    partition_by: Sequence[str] = (),
    *,
    deleted: bool = False,
) -> str:
    """Return latest_rows.sql() over a table with json_fields.fields(), the partition columns and `__epoch`.

    `relation` is the quoted name of the table. `partition_by` are the columns whose values are in the objects' keys:
    they have the types of the lake.
    """
    latest = latest_rows.sql(versions[-1:], _ROWS, boundary, deleted=deleted, versioned=False)
    if dialect == "athena":
        latest = latest_rows.for_athena(latest)
    # A version is valid until the next one, also in later epochs.
    epoch = Position.decode(boundary).epoch
    first = max((version.epoch for version in versions if version.epoch <= epoch), default=versions[0].epoch)
    read = [version for version in versions if version.epoch >= first]
    rows = _Rows(read, rules, dialect, tuple(partition_by)).sql(relation)
    return f"WITH {_ROWS} AS ({rows}), {latest.removeprefix('WITH ')}"


@dataclass(frozen=True)
class _Rows:
    """The SELECT of typed rows; see latest_sql()."""

    versions: Sequence[TableSchema]
    rules: ValueRules
    dialect: Dialect
    partition_by: tuple[str, ...]

    def sql(self, relation: str) -> str:
        """Return the SELECT over a table."""
        newest = self.versions[-1]
        columns = [f"{self._value(column)} AS {self._name(column.name)}" for column in newest.columns]
        columns += [f"{self._converted(column, column.name)} AS {self._name(column.name)}" for column in newest.dropped]
        for name, kind in EVENT_FIELDS.items():
            quoted = self._name(name)
            columns.append(f"{quoted} = 'true' AS {quoted}" if kind == "boolean" else quoted)
        columns += [f"{self._unchanged(newest)} AS {self._name(UNCHANGED)}", f"0 AS {self._name(OFFSET)}"]
        return f"SELECT {', '.join(columns)}, {self._name(EPOCH)} FROM {relation}"  # noqa: S608 - checked identifiers

    def _name(self, name: str) -> str:
        quote = "`" if self.dialect == "spark" else '"'
        return f"{quote}{name.lower()}{quote}"

    def _text(self, value: str) -> str:
        if self.dialect == "spark":
            value = value.replace("\\", "\\\\")
            return "'" + value.replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def _value(self, column: Column) -> str:
        """Return the value of a column, whose field has had several names if the column was renamed."""
        # A record has one of the fields. Without a field, a column that cannot be NULL has its default.
        default = []
        if column.missing is not None and (not column.nullable or column.inserted is not None):
            default.append(self._convert(column, self._literal(column)))

        def value(names: Sequence[str]) -> str:
            values = [*(self._converted(column, name) for name in names), *default] or ["NULL"]
            return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"

        return self._by_epoch(column, value)

    def _by_epoch(self, column: Column, expression: Callable[[Sequence[str]], str]) -> str:
        """Return `expression(names)` over the names of the column's field, newest first, which depend on the epoch.

        In a new epoch, a former name of the column can be the name of another column. In one epoch it cannot
        (evolution.py). A column that an epoch did not have has no names there.
        """
        found: dict[int, list[str]] = {version.epoch: [] for version in self.versions}
        for version in reversed(self.versions):
            was = match_columns(version, self.versions[-1]).get(column.name)
            if was is not None and was.name not in found[version.epoch]:
                found[version.epoch].append(was.name)
        epochs = sorted(found)
        expressions = [expression(found[epoch]) for epoch in epochs]
        if all(each == expressions[-1] for each in expressions):
            return expressions[-1]
        cases = (
            f"WHEN {self._name(EPOCH)} < {following} THEN {each}"
            for following, each in zip(epochs[1:], expressions[:-1], strict=True)
        )
        return f"CASE {' '.join(cases)} ELSE {expressions[-1]} END"

    def _literal(self, column: Column) -> str:
        text = str(column.missing)
        return text if field_type(column) in NUMBERS else self._text(text)

    def _converted(self, column: Column, name: str) -> str:
        field = self._name(name)
        if name.lower() in self.partition_by:
            return self._present(column, field) if column.lake_type == "string" else field
        return self._convert(column, field)

    def _convert(self, column: Column, field: str) -> str:
        infinite = special_values.infinities(column)
        value = self._finite(column, field)
        if infinite is None:
            return value
        text = f"CAST({field} AS {_TEXT[self.dialect]})"
        up, down = (", ".join(map(self._text, texts)) for texts in infinite)
        if self.rules.infinity != "max":
            return f"CASE WHEN {text} NOT IN ({up}, {down}) THEN {value} END"
        kind = column.lake_type.upper()
        digits = 26 if self.dialect == "spark" else 23  # a timestamp(3) of Athena has milliseconds
        last, first = (f"{kind} '{end[:digits]}'" for end in special_values.ends(column))
        return f"CASE WHEN {text} IN ({up}) THEN {last} WHEN {text} IN ({down}) THEN {first} ELSE {value} END"

    def _finite(self, column: Column, field: str) -> str:
        unit = 1000 if in_milliseconds(column) else 1
        match column.base:
            case "date":
                value = _DATE[self.dialect].format(field)
            case "timestamp without time zone":
                value = _TIMESTAMP[self.dialect].format(field, unit)
            case "timestamp with time zone":
                value = _ZONED[self.dialect].format(field)
            case "time without time zone":
                value = f"{field} * {unit}"
            case "bytea":
                value = _BINARY[self.dialect].format(self._present(column, field))
            case "numeric" if column.lake_type == "string":
                value = self._number(field)
            case _ if column.lake_type.startswith("decimal"):
                value = f"TRY_CAST({field} AS {column.lake_type.upper()})"
            case _:
                value = self._present(column, field) if column.lake_type == "string" else field
        return value

    def _present(self, column: Column, field: str) -> str:
        """Return the field, or NULL in place of a value that PostgreSQL left out."""
        return f"CASE WHEN {field} NOT IN ({self._placeholders(column)}) THEN {field} END"

    def _placeholders(self, column: Column) -> str:
        return ", ".join(map(self._text, placeholders(column)))

    def _number(self, field: str) -> str:
        """Return a number's text without an exponent, and PostgreSQL's names of special values."""
        parts = (f"regexp_extract({field}, '{_SMALL_NUMBER}', {group})" for group in (1, 2, 3, 4))
        sign, whole, rest, places = parts
        zeros = f"rpad('', CAST({places} AS INTEGER) - 1, '0')"
        special = " ".join(f"WHEN {field} = '{java}' THEN '{name}'" for java, name in SPECIAL_NUMBERS.items())
        matches = f"{field} RLIKE '{_SMALL_NUMBER}'"
        if self.dialect == "athena":
            matches = f"regexp_like({field}, '{_SMALL_NUMBER}')"
        plain = f"concat({sign}, '0.', {zeros}, {whole}, {rest})"
        return f"CASE {special} WHEN {field} = '{PLACEHOLDER}' THEN NULL WHEN {matches} THEN {plain} ELSE {field} END"

    def _unavailable(self, placeholders: str, names: Sequence[str]) -> str:
        """Return the condition that one of the fields has a placeholder."""
        return " OR ".join(f"{self._name(name)} IN ({placeholders})" for name in names) or "FALSE"

    def _unchanged(self, newest: TableSchema) -> str:
        """Return the names of the columns whose value PostgreSQL left out."""
        flags = []
        for column in newest.columns:
            if not toastable(column) or column.inserted is not None:
                continue
            unavailable = self._by_epoch(column, partial(self._unavailable, self._placeholders(column)))
            flags.append(f"CASE WHEN {unavailable} THEN '{column.name.lower()}' END")
        if not flags:
            return f"CAST(NULL AS {_TEXTS[self.dialect]})"
        return f"filter({_ARRAY[self.dialect].format(', '.join(flags))}, x -> x IS NOT NULL)"
