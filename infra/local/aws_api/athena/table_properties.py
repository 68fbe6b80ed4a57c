"""Translates Athena's CREATE TABLE AS for Trino, where compression is a session property, not a table property.

`write_compression`, and the older `parquet_compression` and `orc_compression`, name the codec. INSERT INTO has no
properties: Athena writes with the table's codec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from infra.local.aws_api.athena.errors import invalid_request

CODECS = {"GZIP": "GZIP", "LZ4": "LZ4", "NONE": "NONE", "SNAPPY": "SNAPPY", "UNCOMPRESSED": "NONE", "ZSTD": "ZSTD"}
"""Athena's codecs that Trino writes, with Trino's names."""
_COMPRESSION = ("write_compression", "parquet_compression", "orc_compression")
_NAME = r'(?:"[^"]+"|\w+)'
_BEFORE = re.compile(
    rf"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}(?:\s*\.\s*{_NAME}){{0,2}}\s+WITH\s*\(", re.IGNORECASE
)
_PROPERTY = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Translated:
    """A statement without compression properties, and the codec that they set, by Trino's name; None if not set."""

    sql: str
    codec: str | None


def translate(sql: str) -> Translated:
    """Translate a CREATE TABLE AS; other text is returned unchanged.

    Raises:
        AwsError: InvalidRequestException for an unknown codec, two compression properties, or one that does not fit
            the format.
    """
    found = _BEFORE.match(sql)
    if found is None:
        return Translated(sql, None)
    parts = list(_parts(sql, found.end()))
    end = found.end() + sum(len(part) + 1 for part in parts)
    properties = {}
    for part in parts:
        match = _PROPERTY.fullmatch(part)
        if match is None:
            return Translated(sql, None)  # Trino reports the syntax error
        properties[match["name"].lower()] = match["value"]
    named = [name for name in _COMPRESSION if name in properties]
    if not named:
        return Translated(sql, None)
    if len(named) > 1:
        raise invalid_request(f"Table properties {' and '.join(named)} cannot be used together.")
    value = properties.pop(named[0]).strip("'").upper()
    written = properties.get("format", "'PARQUET'").strip("'").upper()
    if named[0] != "write_compression" and not named[0].startswith(written.lower()):
        raise invalid_request(f"Table property {named[0]} cannot be used with format {written}.")
    if value not in CODECS:
        raise invalid_request(f"Unsupported compression {value}; the local Athena has {', '.join(CODECS)}.")
    rest = ", ".join(f"{name} = {text}" for name, text in properties.items())
    head = sql[: found.end() - 1]
    clause = f"{head}({rest})" if rest else re.sub(r"\s+WITH\s*\Z", "", head, flags=re.IGNORECASE)
    return Translated(clause + sql[end:], CODECS[value])


def target(sql: str, database: str | None) -> str | None:
    """Return `database.table` of a CREATE TABLE AS or INSERT INTO; None if the statement cannot be parsed."""
    try:
        statement = sqlglot.parse_one(sql, dialect="trino")
    except SqlglotError:
        return None
    table = statement.find(exp.Table)
    return None if table is None else f"{table.db or database}.{table.name}".lower()


def _parts(sql: str, start: int) -> Iterator[str]:
    """Yield the comma-separated parts of the clause from `start` to its closing parenthesis."""
    depth, quoted, begin = 0, False, start
    for index in range(start, len(sql)):
        char = sql[index]
        if char == "'":
            quoted = not quoted
        if quoted:
            continue
        if depth == 0 and char in ",)":
            yield sql[begin:index]
            begin = index + 1
            if char == ")":
                return
        depth += (char in "([") - (char in ")]")
