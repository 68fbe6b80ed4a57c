"""Fenced code blocks of the documentation's Markdown pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\$ (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block's language and its text without the indentation of the list that contains it."""

    language: str
    text: str

    def commands(self) -> list[str]:
        """Return the lines of a shell block, or the lines after a prompt of a console block; otherwise nothing."""
        if self.language == "console":
            return _PROMPT.findall(self.text)
        return self.text.splitlines() if self.language == "sh" else []


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's text in order."""
    for indent, language, text in _FENCED.findall(page):
        yield Block(language, textwrap.dedent(text) if indent else text)
