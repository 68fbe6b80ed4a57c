"""Change single fields of a record's JSON text, and keep the text of all other fields as it is.

Landing applies the transforms with `at: landing`. A poll hashes values here, because the salt must not be in a
statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from json.decoder import WHITESPACE, JSONDecoder, scanstring  # type: ignore[attr-defined]  # not in the stubs

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.transforms import CastType, TableTransforms, hashed

_DECODER = JSONDecoder()
_INTEGER = re.compile(r"-?\d+")


def members(text: str) -> list[tuple[str, str]]:
    """Return names and texts of an object's fields, in order. Raises ValueError for another text."""
    at = _after(text, 0, "{")
    found: list[tuple[str, str]] = []
    if text[at : at + 1] == "}":
        at += 1
    else:
        while True:
            name, at = scanstring(text, _after(text, at, '"', skip=False))
            start = _after(text, at, ":")
            _, end = _DECODER.raw_decode(text, start)
            found.append((name, text[start:end]))
            at = _blank(text, end)
            if text[at : at + 1] != ",":
                break
            at = _blank(text, at + 1)
        at = _after(text, at, "}", skip=False)
    if _blank(text, at) != len(text):
        raise ValueError("there is more than one object")
    return found


def landed(text: str, changes: TableTransforms) -> str:
    """Return a record with the changes that landing makes: cast, renamed and inserted fields.

    A record that has a change already is not changed again: its transform was applied at the source before. Raises
    ValueError if the record is not a JSON object.
    """
    changed = [(changes.renamed.get(name, name), _cast(value, changes.cast.get(name))) for name, value in members(text)]
    present = {name for name, _ in changed}
    inserted = ((name, _json(value)) for name, value in changes.inserted.items() if name not in present)
    return _text([*changed, *inserted])


def with_hashes(text: str, columns: Iterable[Column], salt: str) -> str:
    """Return a record whose values of hashed columns are replaced by their hashes."""
    hashes: Mapping[str, Callable[[str | None], str | None]] = {
        column.name: lambda value, column=column: hashed(  # type: ignore[misc]
            value, salt, column.masked.algorithm, next(iter(column.arguments), None)
        )
        for column in columns
        if column.hashed
    }
    return _text(
        (name, _json(hashes[name](json.loads(value))) if name in hashes else value) for name, value in members(text)
    )


def _after(text: str, at: int, expected: str, *, skip: bool = True) -> int:
    """Return the position after an expected character and, with `skip`, after the blanks that follow it."""
    at = _blank(text, at)
    if text[at : at + 1] != expected:
        raise ValueError(f"there is no {expected} at position {at}")
    return _blank(text, at + 1) if skip else at + 1


def _blank(text: str, at: int) -> int:
    found = WHITESPACE.match(text, at)
    return at if found is None else int(found.end())


def _text(fields: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_json(name)}:{value}" for name, value in fields) + "}"


def _json(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cast(value: str, kind: CastType | None) -> str:
    """Return a value as Kafka Connect's Cast writes it; a value of another type than expected is not changed."""
    if kind == "string" and (value in {"true", "false"} or _INTEGER.fullmatch(value)):
        return _json(value)
    return f"{value}.0" if kind == "float64" and _INTEGER.fullmatch(value) else value
