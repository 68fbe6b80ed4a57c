"""Scripts of SQL, cut into statements so that an error can be said to be in one line of one file.

Here: reading and checking a folder of scripts. A script is for the server alone: what only psql understands
(backslash commands, COPY data in the script) and what would end the loader's one transaction is refused.
Not here: running it (loader.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cdc_lake.samples.errors import LoadError

# PostgreSQL's lexical rules (manual, 4.1): strings, quoted names, dollar quotes, comments. A word may
# contain "$", so that a$b$c is a name and no dollar quote. Block comments nest and are followed by hand.
_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*)
      | (?P<comment>/\*)
      | (?P<string>[eE]'(?:[^'\\]|\\.|'')*' | '[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*")
      | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
      | (?P<word>[^\W\d][\w$]*)
      | (?P<number>\d[\w.]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ENDS_TRANSACTION = {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}


@dataclass(frozen=True)
class Statement:
    """One statement, without its semicolon, and the line of the file that it starts in (from 1)."""

    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """A script that was read, cut and found fit to be loaded."""

    path: Path
    statements: tuple[Statement, ...]


def read_folder(folder: Path) -> tuple[Script, ...]:
    """The *.sql files of the folder in the order of their names.

    Raises LoadError, with file and line, if there are none or one of them can't be loaded.
    """
    if not folder.is_dir():
        raise LoadError(f"{folder} is not a folder. Give the folder that holds your .sql scripts.")
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".sql" and path.is_file())
    if not paths:
        raise LoadError(f"There is no .sql file in {folder}. Give the folder that holds your .sql scripts.")
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> Script:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LoadError(f"{path} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise LoadError(f"{path}, line {line}: not UTF-8. Convert the file to UTF-8.") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LoadError(f"{path}, line {line}: a NUL byte, which PostgreSQL's text can't hold.")
    return Script(path, tuple(split(text, path)))


def split(text: str, path: Path) -> Iterator[Statement]:
    """The statements of a script.

    Raises LoadError at the first thing that only psql could run or that would end the transaction;
    path is for its message.
    """
    position = 0
    while position < len(text):
        statement, position = _next(text, position, path)
        if statement is not None:
            yield statement


def _next(text: str, position: int, path: Path) -> tuple[Statement | None, int]:
    start: int | None = None
    end = position
    words: list[str] = []
    parentheses = blocks = 0  # a semicolon in a rule's (…; …) or in BEGIN ATOMIC … END ends nothing
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None  # noqa: S101 - the last alternative matches anything
        kind, at, position = token.lastgroup, position, token.end()
        value = token.group()
        if kind == "blank":
            continue
        if kind == "comment":
            position = _end_of_comment(text, at, path)
            continue
        if value == ";" and parentheses == 0 and blocks == 0:
            break
        start = at if start is None else start
        if kind == "dollar":
            close = text.find(value, position)
            _demand(close >= 0, text, at, path, f"the text quoted with {value} does not end.")
            position = close + len(value)
        elif kind == "word":
            words.append(value.upper())
            blocks += _block_step(words, blocks)
        elif kind == "other":
            parentheses += {"(": 1, ")": -1}.get(value, 0)
            _demand(value not in "'\"", text, at, path, f"the text quoted with {value} does not end.")
            _demand(value != "\\", text, at, path, "a psql command (\\…). Only SQL can be loaded; take it out.")
        end = position
    if start is None:
        return None, position
    _check(words, text, start, path)
    return Statement(text[start:end], text.count("\n", 0, start) + 1), position


def _block_step(words: list[str], blocks: int) -> int:
    """How BEGIN, CASE and END in the body of a function that is written in SQL itself nest."""
    if words[0] != "CREATE" or not {"FUNCTION", "PROCEDURE"} & set(words[1:4]):
        return 0
    if words[-2:] == ["BEGIN", "ATOMIC"] or (blocks and words[-1] == "CASE"):
        return 1
    return -1 if blocks and words[-1] == "END" else 0


def _end_of_comment(text: str, at: int, path: Path) -> int:
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    _demand(False, text, at, path, "the comment that starts here does not end.")
    return len(text)


def _check(words: list[str], text: str, start: int, path: Path) -> None:
    if not words:
        return
    to_savepoint = words[0] == "ROLLBACK" and "TO" in words
    ends = (words[0] in _ENDS_TRANSACTION and not to_savepoint) or words[:2] == ["PREPARE", "TRANSACTION"]
    _demand(not ends, text, start, path, f"{words[0]}: the load is one transaction of its own. Take it out.")
    from_stdin = words[0] == "COPY" and ("FROM", "STDIN") in pairwise(words)
    _demand(not from_stdin, text, start, path,
            "COPY … FROM stdin can't be loaded. Export the data as INSERTs (pg_dump --inserts).")  # fmt: skip
    backslashes = words[0] == "SET" and "STANDARD_CONFORMING_STRINGS" in words and words[-1] == "OFF"
    _demand(not backslashes, text, start, path,
            "standard_conforming_strings = off is not supported. Write such strings as E'…'.")  # fmt: skip


def _demand(fit: bool, text: str, at: int, path: Path, otherwise: str) -> None:
    if not fit:
        raise LoadError(f"{path}, line {text.count(chr(10), 0, at) + 1}: {otherwise} Nothing was loaded.")
