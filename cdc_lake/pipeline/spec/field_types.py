"""Field types that several mappings in a pipeline's YAML use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

_PERIODS = {"hourly": "1h", "daily": "1d"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def matching(pattern: str, advice: str) -> AfterValidator:
    """Return a validator that rejects a text that does not match the pattern; `advice` is its error message."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(advice)
        return text

    return AfterValidator(check)


def unique(texts: list[str]) -> list[str]:
    """Return the list. Raises ValueError if it contains a text more than once."""
    if twice := repeated(texts):
        raise ValueError(f"name each once: {with_verb(twice, 'appears', 'appear')} more than once")
    return texts


def repeated(texts: Iterable[str]) -> list[str]:
    """Return the texts that appear more than once."""
    return sorted(text for text, count in Counter(texts).items() if count > 1)


def with_verb(names: Sequence[str], singular: str = "is", plural: str = "are") -> str:
    """Return names with the form of a verb that agrees with their number: `a is`, or `a, b are`."""
    return f"{', '.join(names)} {singular if len(names) == 1 else plural}"


Identifier = Annotated[
    str,
    matching(
        r"[a-z_][a-z0-9_]{0,47}",
        "use lower-case letters, digits and '_', at most 48 of them, not starting with a digit",
    ),
]
Identifiers = Annotated[list[Identifier], AfterValidator(unique)]
ColumnName = Annotated[
    str, matching(r"[^\x00]{1,63}", "name a column as the source's catalog does: 1 to 63 characters, case matters")
]
Duration = Annotated[
    str, matching(r"[1-9]\d{0,5}[smhd]", "use a whole number up to 999999 and a unit: 30s, 5m, 12h or 7d")
]
SqlFile = Annotated[
    str,
    matching(r"[a-z_][a-z0-9_]*\.sql", "name a .sql file of the YAML's folder, in lower-case letters, digits and '_'"),
]
SqlFiles = Annotated[list[SqlFile], AfterValidator(unique)]
YamlFile = Annotated[
    str,
    matching(
        r"[a-z_][a-z0-9_]*\.yaml", "name a .yaml file of the YAML's folder, in lower-case letters, digits and '_'"
    ),
]
YamlFiles = Annotated[list[YamlFile], AfterValidator(unique)]
TopicName = Annotated[
    str,
    matching(r"[A-Za-z0-9._-]{1,100}", "use letters, digits, '.', '_' and '-', at most 100 of them"),
]
TimeZone = Annotated[
    str, matching(r"[A-Za-z0-9_+/-]{1,63}", "name a time zone of PostgreSQL, such as UTC or Etc/GMT-1")
]
Owner = Annotated[
    str, matching(r"team:[A-Za-z0-9_-]+|[^@\s]+@[^@\s]+", "name a team as team:NAME, or an e-mail address")
]
Count = Annotated[int, Field(strict=True, ge=1)]


def seconds(duration: str) -> int:
    """Return a duration of the YAML (`5m`, `hourly`) in seconds."""
    duration = _PERIODS.get(duration, duration)
    return int(timedelta(**{_UNITS[duration[-1]]: int(duration[:-1])}).total_seconds())
