"""Parse records as JSON objects in Python workers: the text of each field, or the reason why a record is unreadable.

Spark's from_json() would read each record three times: for its fields, for their names, and to find out whether the
record is a single value. They take 91 µs of CPU time for a record of 13 fields, this parser 3
(docs/decisions/0055-parse-records-in-python.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, TableSchema
from cdc_lake.contract.schema.record_versions import RecordLayout, record_layouts

UNREADABLE = "_unreadable"
"""The column with the reason why a record is unreadable; NULL if it is a JSON object with the expected fields."""
UNKNOWN_FIELDS = "the record has fields that are in no captured schema version: "
_NOT_AN_OBJECT = "the record is not a JSON object"
TEXTS = "_texts"
"""The column with the texts of the fields."""
_PRESENT = "_present"
_BLANKS = " \t\n\r"
_MOST_ERRORS = 1000
"""The number of different lists of fields whose errors a worker remembers."""
_Parsed = tuple[Sequence[str | None], Sequence[bool], str | None]
"""The texts, the presence of the optional fields, and the reason why a record is unreadable."""


def field_text(name: str) -> SparkColumn:
    """Return the text of a field of the parsed record: NULL if it is null or missing, JSON for an object or array."""
    return F.col(TEXTS).getField(_unique_name(name))


def has_field(name: str) -> SparkColumn:
    """Return whether the parsed record has a field that not all records of its epoch have."""
    return F.col(_PRESENT).getField(_unique_name(name))


class _Number(str):
    """The text of a JSON number, which may have more digits than a Python float."""

    __slots__ = ()


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Objects are parsed to tuples of pairs, which keep repeated names, and arrays to lists.
_PARSER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=_Number, parse_float=_Number, parse_constant=_reject)


@dataclass(frozen=True)
class _ExpectedFields:
    """The names that the records of the epochs [first, end) may have and must have."""

    first: int
    end: int | None
    required: tuple[str, ...]
    known: frozenset[str]
    renamed: tuple[tuple[str, bool, tuple[str, ...]], ...]
    """Columns with several names: the column, whether a record must have one of the names, and the names."""

    @classmethod
    def of(cls, layout: RecordLayout) -> _ExpectedFields:
        """Return the fields of a layout."""
        single = [each.fields[0].name for each in layout.columns if each.certain]
        renamed = [each for each in layout.columns if len(each.fields) > 1]
        return cls(
            layout.first,
            layout.end,
            (*single, *EVENT_FIELDS),
            frozenset(layout.known_fields()),
            tuple((each.name, each.required, tuple(field.name for field in each.fields)) for each in renamed),
        )

    def covers(self, epoch: int) -> bool:
        """Return whether records of the epoch have these fields."""
        return self.first <= epoch and (self.end is None or epoch < self.end)

    def error(self, names: Sequence[str]) -> str | None:
        """Return why a record with these fields is unreadable, None if it is not."""
        found = set(names)
        missing = [name for name in self.required if name not in found]
        missing += [column for column, required, fields in self.renamed if required and found.isdisjoint(fields)]
        if missing:
            return f"fields are missing: {', '.join(missing)}"
        if unknown := [name for name in dict.fromkeys(names) if name not in self.known]:
            return f"{UNKNOWN_FIELDS}{', '.join(unknown)}"
        if len(found) < len(names):
            return "the record has a field twice"
        twice = [column for column, _, fields in self.renamed if len(found.intersection(fields)) > 1]
        return f"the record has more than one field for column {twice[0]}" if twice else None


@dataclass(frozen=True)
class RecordParser:
    """Parses the records of a table.

    `texts` are the fields whose texts are returned, `optional` those that not all records of an epoch have.
    """

    texts: tuple[str, ...]
    optional: tuple[str, ...]
    layouts: tuple[_ExpectedFields, ...]

    @classmethod
    def of(cls, versions: Sequence[TableSchema], epochs: Iterable[int] | None = None) -> RecordParser:
        """Return the parser for records of `epochs`, or of all epochs; `versions` are the captured schemas."""
        layouts = record_layouts(versions, epochs)
        columns = [column for layout in layouts for column in layout.columns]
        texts = dict.fromkeys(field.name for column in columns for field in column.fields)
        optional = dict.fromkeys(field.name for column in columns if not column.certain for field in column.fields)
        expected = tuple(_ExpectedFields.of(layout) for layout in layouts)
        return cls((*texts, *EVENT_FIELDS), tuple(optional), expected)

    @property
    def schema(self) -> str:
        """The parsed columns, as a schema of Spark."""
        texts = ", ".join(f"`{_unique_name(name)}`: string" for name in self.texts)
        present = ", ".join(f"`{_unique_name(name)}`: boolean" for name in self.optional)
        return f"{TEXTS} struct<{texts}>, {UNREADABLE} string" + (f", {_PRESENT} struct<{present}>" if present else "")

    def with_parsed(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return records, which have the columns `epoch` and `value`, with the parsed columns."""
        values = zip(records.column("epoch").to_pylist(), records.column("value").to_pylist(), strict=True)
        rows = [self._parse(epoch, value) for epoch, value in values]
        columns = {
            TEXTS: _struct([texts for texts, _, _ in rows], self.texts, pa.string()),
            UNREADABLE: pa.array([error for _, _, error in rows], pa.string()),
        }
        if self.optional:
            columns[_PRESENT] = _struct([present for _, present, _ in rows], self.optional, pa.bool_())
        return pa.RecordBatch.from_arrays(
            [*records.columns, *columns.values()], names=[*records.schema.names, *columns]
        )

    def _parse(self, epoch: int, value: bytes | None) -> _Parsed:
        fields = None if value is None else _reproducible(value)
        if fields is None:
            return self._parse_exactly(epoch, value)
        found = map(fields.get, self.texts)
        texts = [each if type(each) is str or each is None else orjson.dumps(each).decode() for each in found]
        return texts, [name in fields for name in self.optional], self._error(epoch, tuple(fields))

    def _parse_exactly(self, epoch: int, value: bytes | None) -> _Parsed:
        try:
            text = "" if value is None else value.decode().lstrip(_BLANKS)
            found, end = _PARSER.raw_decode(text)
            fields = dict(found) if type(found) is tuple else {}
            texts = [_text(fields.get(name)) for name in self.texts]
        except UnicodeDecodeError:
            return self._nothing("the record is not UTF-8")
        except (ValueError, RecursionError):
            return self._nothing(_NOT_AN_OBJECT)
        if type(found) is not tuple:
            return self._nothing(_NOT_AN_OBJECT)
        if text[end:].strip(_BLANKS):
            return self._nothing("the record is more than one JSON object")
        error = self._error(epoch, tuple([name for name, _ in found]))  # faster than from a generator
        if "\\u" in text and not all(_is_unicode(each) for each in texts):
            return self._nothing("the record has a text with half of a surrogate pair")
        return texts, [name in fields for name in self.optional], error

    def _nothing(self, reason: str) -> _Parsed:
        return [None] * len(self.texts), [False] * len(self.optional), reason

    @cached_property
    def _errors(self) -> dict[tuple[int, tuple[str, ...]], str | None]:
        return {}

    def _error(self, epoch: int, names: tuple[str, ...]) -> str | None:
        """Return the error of a record with these fields; nearly all records of a table have the same fields."""
        known, key = self._errors, (epoch, names)
        if key not in known:
            if len(known) == _MOST_ERRORS:
                known.clear()
            known[key] = next(each for each in self.layouts if each.covers(epoch)).error(names)
        return known[key]


def _reproducible(value: bytes) -> dict[str, Any] | None:
    """Return the fields of a JSON object if orjson writes them back as exactly these bytes; otherwise None.

    Then orjson has kept all that it can lose: the digits of numbers, and fields that occur twice. It takes a fifth of
    the time of _PARSER.
    """
    try:
        found = orjson.loads(value)
        return found if type(found) is dict and orjson.dumps(found) == value else None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None


def parse(records: DataFrame, parser: RecordParser) -> DataFrame:
    """Return records with the parsed columns; `records` has `epoch` and `value`."""
    given = ", ".join(f"`{name}` {kind}" for name, kind in records.dtypes)
    return records.mapInArrow(_Parse(parser), f"{given}, {parser.schema}")


@dataclass(frozen=True)
class _Parse:
    parser: RecordParser

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(self.parser.with_parsed, batches)


def _struct(rows: Sequence[Sequence[object]], names: Sequence[str], kind: pa.DataType) -> pa.StructArray:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.StructArray.from_arrays([pa.array(column, kind) for column in columns], map(_unique_name, names))


def _text(value: object) -> str | None:
    """Return a parsed value as text: a string as it is, everything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return _json(value)


def _json(value: object) -> str:
    """Return a parsed value as JSON."""
    match value:
        case _Number():
            return value
        case tuple():
            return "{" + ",".join(f"{_json(name)}:{_json(each)}" for name, each in value) + "}"
        case list():
            return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _is_unicode(text: str | None) -> bool:
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique_name(name: str) -> str:
    """Return a name that differs from others by more than case: Spark ignores case in the names of struct fields."""
    capitals = "".join(str(int(letter.isupper())) for letter in name)
    return f"{name}#{capitals}" if "1" in capitals else name
