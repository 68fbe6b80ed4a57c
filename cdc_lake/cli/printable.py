"""Text from outside (rows, records, engines' messages), made safe to print on a terminal.

A terminal executes escape sequences that are printed: they can rewrite lines that are already shown, change the
window's title or fill the clipboard.
"""

from __future__ import annotations

import json
import re
import sys

# Control characters of ASCII and Latin-1 but newline and tab, controls of the writing direction, lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return the text with each control character as JSON writes it (`\u001b`); newlines and tabs are kept."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_output(text: str) -> str:
    """Return printable(text) where standard output is a terminal, else the text itself: a program reads it."""
    return printable(text) if sys.stdout.isatty() else text


def json_text(data: object, indent: int | None = None) -> str:
    """Return the data as JSON with every control character escaped, which is the same data to a JSON parser."""
    return printable(json.dumps(data, ensure_ascii=False, indent=indent))
