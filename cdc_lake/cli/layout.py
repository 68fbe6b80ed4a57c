"""Fold tables and texts to the width of a terminal; output to a pipe or file is not folded."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

UNLIMITED_WIDTH = 10**9
"""The width of output to a pipe or file, so large that lines are never folded."""
_GAP = 2
_MIN_WIDTH = 16
# A name or path may be folded after these characters.
_BREAKABLE = re.compile(r"[^\s/,;:=._+-]*[\s/,;:=._+-]+|[^\s/,;:=._+-]+")


def console(stderr: bool = False) -> Console:
    """Return the console; in a pipe or file its width is unlimited."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else UNLIMITED_WIDTH)


def fold(text: Text, width: int) -> Text:
    """Fold the text into lines of at most `width` cells.

    Lines end at spaces. A word wider than a line is folded after punctuation; a piece without punctuation is folded at
    the line's width.
    """
    lines = [part for line in text.split("\n") for part in line.divide(list(_breaks(line.plain, width)))]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def _breaks(line: str, width: int) -> Iterator[int]:
    """Yield the positions where new lines begin."""
    start = 0
    for word in re.finditer(r"\S+\s*", line):
        if len(word[0].rstrip()) <= width:
            pieces = [(word.start(), word[0])]
        else:
            pieces = [(word.start() + piece.start(), piece[0]) for piece in _BREAKABLE.finditer(word[0])]
        for at, piece in pieces:
            needed = len(piece.rstrip())
            if at > start and at + needed - start > width:
                yield at
                start = at
            while at + needed - start > width:
                start += width
                yield start


def grid(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> Table:
    """Return a table without borders that fits the console: the widest columns are folded."""
    texts = [[Text(str(column.header)), *cells] for column, *cells in zip(columns, *rows, strict=True)]
    widths = [max(text.cell_len for text in column) for column in texts]
    while sum(widths) + _GAP * (len(widths) - 1) > console.width and max(widths) > _MIN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    table = Table(*columns, box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column, width in zip(table.columns, widths, strict=True):
        column.width, column.no_wrap = width, True
    for row in rows:
        table.add_row(*(fold(cell, width) for cell, width in zip(row, widths, strict=True)))
    return table
