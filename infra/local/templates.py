"""Renders the configuration templates of the engines."""

from __future__ import annotations

from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "components"


def render(template: str, values: dict[str, str | int | Path]) -> str:
    """Return the text of `components/<template>` with every `$name` substituted.

    Raises KeyError if the template contains a name that is not in `values`.
    """
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(
        {name: str(value) for name, value in values.items()}
    )
