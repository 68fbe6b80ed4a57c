"""Escape control characters in rows, records and engines' messages before they are printed.

A terminal executes printed escape sequences: they can rewrite earlier lines, change the window's title or fill the
clipboard.
"""

from __future__ import annotations

import json
import re
import sys

# ASCII and Latin-1 control characters except newline and tab, Unicode's bidirectional controls, lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return the text with control characters escaped as in JSON (`\u001b`), except newlines and tabs."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_output(text: str) -> str:
    """Return printable(text) if standard output is a terminal, else the unchanged text."""
    return printable(text) if sys.stdout.isatty() else text


def json_text(data: object, indent: int | None = None) -> str:
    """Return the data as JSON with all control characters escaped."""
    return printable(json.dumps(data, ensure_ascii=False, indent=indent))
