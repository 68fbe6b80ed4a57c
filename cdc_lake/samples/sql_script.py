"""Read a folder of SQL scripts and split them into statements, so that every error has a line number.

Statements that only psql can run (backslash commands), and those that would end the loader's transaction, are rejected.
The server reports all other errors. script_run.py runs the statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdc_lake.contract.sql_tokens import TOKEN
from cdc_lake.samples.errors import LoadError

_REFUSED = {
    r"(BEGIN|START|COMMIT|END|ABORT|ROLLBACK(?!.* TO\b)|PREPARE TRANSACTION)\b": (
        "the load is one transaction. Remove this statement."
    ),
    r"SET .*\bSTANDARD_CONFORMING_STRINGS\b.* OFF$": (
        "standard_conforming_strings = off is not supported. Write such strings as E'…'."
    ),
    r".*\\": "a psql command (\\…). Only SQL is supported. Remove the command.",
}
"""The reasons for rejecting a statement, by a pattern that its unquoted words, in upper case, match."""
_COPY_FROM_SCRIPT = re.compile(r"COPY .*\bFROM STDIN\b")
_END_OF_DATA = re.compile(r"^\\\.\r?$", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """One statement, without its semicolon, and the line of the file where it starts (from 1)."""

    text: str
    line: int
    data: str | None = None
    """The lines after COPY … FROM stdin, without the line \\. that ends them; the script's end can end them too."""


@dataclass(frozen=True)
class Script:
    """A script and its statements."""

    path: Path
    statements: tuple[Statement, ...]


def read_folder(folder: Path) -> tuple[Script, ...]:
    """Return the *.sql files of the folder, ordered by name.

    Raises LoadError, with file and line, if the folder has no such file or a file cannot be loaded.
    """
    if not folder.is_dir():
        raise LoadError(f"Cannot read {folder}: it is not a folder. Give the folder that contains your .sql scripts.")
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".sql" and path.is_file())
    if not paths:
        raise LoadError(
            f"Cannot load {folder}: it contains no .sql file. Give the folder that contains your .sql scripts."
        )
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> Script:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LoadError(
            f"Cannot read {path}: {error.strerror}. Make the file readable, or remove it from the folder."
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise LoadError(f"Cannot read {path}, line {line}: it is not UTF-8. Convert the file to UTF-8.") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LoadError(
            f"Cannot read {path}, line {line}: it contains a NUL byte, which PostgreSQL cannot store. Remove it."
        )
    return Script(path, tuple(split(text, path)))


def split(text: str, path: Path) -> Iterator[Statement]:
    """Yield the statements of a script. Raises LoadError at the first rejected one; `path` is for the message."""
    start: int | None = None
    words: list[str] = []
    parentheses = blocks = 0  # a semicolon in a rule's (…; …) or in BEGIN ATOMIC … END does not end the statement
    position, line, counted = 0, 1, 0  # `line` is the line of the character at `counted`
    while token := TOKEN.match(text, position):
        kind, value, position = token.lastgroup, token.group().upper(), token.end()
        if kind == "blank":
            continue
        if value == ";" and parentheses == blocks == 0:
            if start is not None:
                line, counted = line + text.count("\n", counted, start), start
                data, position = _copy_data(text, position, words, f"{path}, line {line}")
                yield _statement(text[start : token.start()], line, words, path, data)
            start, words = None, []
            continue
        start = token.start() if start is None else start
        parentheses += {"(": 1, ")": -1}.get(value, 0)
        if kind == "word" or value == "\\":
            words.append(value)
            if words[-2:] == ["BEGIN", "ATOMIC"] or (blocks and value == "CASE"):
                blocks += 1
            elif blocks and value == "END":
                blocks -= 1
    if start is not None:
        line += text.count("\n", counted, start)
        data, _ = _copy_data(text, len(text), words, f"{path}, line {line}")
        yield _statement(text[start:], line, words, path, data)


def _copy_data(text: str, position: int, words: Sequence[str], place: str) -> tuple[str | None, int]:
    """Return the data of the statement that ends at `position`, and the position of the next statement.

    The data is None if the statement is not a COPY … FROM stdin. Raises LoadError if the data does not begin on the
    line after the statement.
    """
    if not _COPY_FROM_SCRIPT.match(" ".join(words)):
        return None, position
    end_of_line = text.find("\n", position)
    begin = len(text) if end_of_line < 0 else end_of_line + 1
    if text[position:begin].strip():
        raise LoadError(
            f"Cannot run {place}: there is text after COPY … FROM stdin on the same line. Nothing was loaded. Put the "
            "data on the lines after the semicolon."
        )
    end = _END_OF_DATA.search(text, begin)
    return (text[begin:], len(text)) if end is None else (text[begin : end.start()], end.end())


def _statement(text: str, line: int, words: Sequence[str], path: Path, data: str | None) -> Statement:
    for pattern, reason in _REFUSED.items():
        if found := re.match(pattern, " ".join(words)):
            name = f"{found[1]}: " if found.groups() else ""
            raise LoadError(f"Cannot run {path}, line {line}: {name}{reason} Nothing was loaded.")
    return Statement(text.rstrip(), line, data)
