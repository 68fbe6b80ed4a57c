"""Templates of connector configurations: JSON files with `{{name}}` placeholders.

A placeholder can be in a setting's name or value. Connect's own `${provider:path:key}` is not changed, since the
Connect worker resolves it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from resources.connect.error_policy import require_policy
from resources.errors import ConnectorConfigInvalid

_CONVERTERS = ("key.converter", "value.converter")
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")


def placeholders(path: Path) -> frozenset[str]:
    """Return the names of all placeholders in the file."""
    return frozenset().union(*placeholders_of(path).values())


def placeholders_of(path: Path) -> dict[str, frozenset[str]]:
    """Return the names of the placeholders in each setting; settings without placeholders are left out."""
    found = {
        setting: frozenset(_PLACEHOLDER.findall(f"{setting} {value}")) for setting, value in _settings(path).items()
    }
    return {setting: names for setting, names in found.items() if names}


def render(path: Path, values: Mapping[str, str], converters: Path | None = None) -> dict[str, str]:
    """Return the file's settings with the placeholders filled; values are inserted unchanged.

    `converters` is a file; its settings replace those whose names begin with key.converter or value.converter.

    Raises:
        ConnectorConfigInvalid: a placeholder has no value, a value has no placeholder, the file is not an object of
            strings, or its settings violate the error policy.
    """
    settings = _settings(path)
    if converters is not None:
        settings = {name: value for name, value in settings.items() if not name.startswith(_CONVERTERS)}
        settings |= _settings(converters)
    require_policy(str(path), settings)
    used = frozenset().union(*(_PLACEHOLDER.findall(f"{name} {value}") for name, value in settings.items()))
    if missing := sorted(used - values.keys()):
        raise ConnectorConfigInvalid(
            f"Cannot render {path}: there is no value for the placeholder{'s' if len(missing) > 1 else ''}"
            f" {', '.join(missing)}. Pass a value for each, or remove them from the file."
        )
    if unused := sorted(values.keys() - used):
        raise ConnectorConfigInvalid(
            f"Cannot render {path}: it has no placeholder for {', '.join(unused)}, so the value would have no effect."
            f" Add the placeholder to the file, whose placeholders are {', '.join(sorted(used)) or 'none'}."
        )

    def filled(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: values[match[1]], text)

    return {filled(name): filled(value) for name, value in settings.items()}


def table_pattern(tables: Iterable[tuple[str, str]]) -> str:
    """Return Debezium's table.include.list, a list of anchored regular expressions, for (schema, name) pairs.

    Raises:
        ConnectorConfigInvalid: a name contains a comma, which Debezium treats as the end of an expression.
    """
    patterns = []
    for schema, table in tables:
        if "," in schema + table:
            raise ConnectorConfigInvalid(
                f"Cannot capture {schema}.{table}: Debezium supports no comma in a table's name. Rename the table."
            )
        patterns.append(f"{re.escape(schema)}[.]{re.escape(table)}")
    return ",".join(patterns)


def column_pattern(columns: Iterable[tuple[str, str, str]]) -> str:
    """Return Debezium's column.exclude.list, or another list of column patterns, for (schema, table, column).

    Debezium matches without regard to case and splits the list at commas. These expressions match a column's name in
    its exact case and contain no comma.
    """
    return ",".join(
        f"{re.escape(schema)}[.]{re.escape(table)}[.](?-i:{re.escape(column)})".replace(",", r"\x2C")
        for schema, table, column in columns
    )


def _settings(path: Path) -> dict[str, str]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConnectorConfigInvalid(
            f"Cannot read {path} as a connector's configuration: {error}. Correct the file."
        ) from error
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise ConnectorConfigInvalid(
            f"Cannot read {path} as a connector's configuration: it is not a JSON object whose values are strings."
            " Quote numbers and booleans, and use one object."
        )
    return settings
