"""Format query results as a table, CSV or JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc_lake.cli.printable import printable
from cdc_lake.contract.errors import ContractError

if TYPE_CHECKING:
    from resources.athena import QueryResult

_NUMBERS = frozenset({"tinyint", "smallint", "integer", "bigint", "float", "double", "decimal"})
# Spreadsheets run a cell that begins with one of these as a formula; numbers are not formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WIDE = 100_000  # width of a table in a pipe or file: lines are never folded


def print_table(result: QueryResult) -> None:
    """Print the rows as a table; print their number, the bytes scanned and the seconds on stderr."""
    table = Table()
    for name, kind in result.columns:
        table.add_column(Text(printable(name)), justify="right" if kind in _NUMBERS else "left", overflow="fold")
    for row in result.rows:
        table.add_row(*(Text("NULL", style="dim") if each is None else Text(printable(as_text(each))) for each in row))
    if result.columns:
        Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
    rows = f"{len(result.rows):,} row{'' if len(result.rows) == 1 else 's'}" if result.columns else "Done"
    scanned = "an earlier query's result" if result.reused else f"{result.bytes_scanned:,} bytes scanned"
    how = f"{scanned}, {result.seconds:.2f} s, query {result.query_id}"
    summary = f"{rows}, {how if result.query_id else f'{result.seconds:.2f} s, run by Spark'}"
    Console(stderr=True).print(summary, style="dim", markup=False, highlight=False, soft_wrap=True)


def csv_lines(result: QueryResult) -> list[str]:
    """Return the header and a line for each row. NULL is an empty cell; an empty string is written as "".

    A string that a spreadsheet would run as a formula gets a leading apostrophe, as OWASP advises
    (https://owasp.org/www-community/attacks/CSV_Injection), unless it is a number.
    """
    names = [name for name, _ in result.columns]
    return [_csv_line(each) for each in ([names, *result.rows] if names else [])]


def json_text(result: QueryResult) -> str:
    """Return the rows as a JSON array with one object per line.

    Decimals are numbers with all their digits. Dates and times are strings in ISO 8601, binary values are hexadecimal
    strings, and a float that is not finite is the string "nan", "inf" or "-inf". Control characters are escaped.

    Raises:
        ContractError: two columns have the same name.
    """
    names = [name for name, _ in result.columns]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ContractError(
            f"Cannot print the rows as JSON: several columns have the same name ({', '.join(duplicates)}). Give each "
            "another name with AS, or use another --format."
        )
    lines = (
        "{" + ", ".join(f"{_json(name)}: {_json(value)}" for name, value in zip(names, row, strict=True)) + "}"
        for row in result.rows
    )
    return printable("[\n" + ",\n".join(lines) + "\n]") if result.rows else "[]"


def as_text(value: object) -> str:
    """Return a value other than NULL as a cell of a table or a CSV file."""
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case date():
            return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case list() | dict() | tuple():
            return _json(value)
    return str(value)


def _csv_line(cells: Sequence[object]) -> str:
    return ",".join(_csv_cell(each) for each in cells)


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    text = as_text(value)
    if isinstance(value, str) and text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    if text and not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _json(value: object) -> str:
    match value:
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case float():
            return json.dumps(value if math.isfinite(value) else str(value))
        case Decimal():
            return f"{value:f}"
        case datetime():
            return json.dumps(value.isoformat())
        case list() | dict() | tuple():
            return _json_nested(value)
    return json.dumps(as_text(value), ensure_ascii=False)


def _json_nested(value: list[object] | dict[object, object] | tuple[object, ...]) -> str:
    if isinstance(value, tuple) and hasattr(value, "asDict"):  # a struct from Spark, as a Row
        value = value.asDict()
    if not isinstance(value, dict):
        return "[" + ", ".join(_json(each) for each in value) + "]"
    return "{" + ", ".join(f"{_json(str(key))}: {_json(each)}" for key, each in value.items()) + "}"
