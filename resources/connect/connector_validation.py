"""Validates connector files with the plugins of a Connect worker.

Placeholders without a known value get a made-up one. The errors of settings with made-up values are ignored, since the
file does not cause them. If a database setting has a made-up value, the errors of all database settings are ignored:
Debezium reports a failed connection as an error of `database.hostname`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from resources.connect.config_template import placeholders, placeholders_of, render
from resources.connect.kafka_connect import KafkaConnect

CLASS = "connector.class"
# Nothing listens on port 1, so that connections fail at once.
_MADE_UP = {
    "host": "127.0.0.1",
    "port": "1",
    "partitions": "1",
    "retention_ms": "604800000",
    "exactly_once": "requested",
    "record_bytes": "1048576",
}
_DATABASE = "database."
# Prefixes of settings that Connect and Debezium pass to converters, clients, created topics and the JDBC driver.
_PASSED_ON = (
    *("key.converter.", "value.converter.", "header.converter."),
    *("producer.override.", "consumer.override.", "admin.override."),
    *("topic.creation.", "driver.", "internal."),
)


_MISSPELT = 0.85
"""The difflib similarity (0 to 1) from which a name counts as a misspelling of another."""


@dataclass(frozen=True)
class ValidationResult:
    """The plugin's validation of a file."""

    faults: tuple[str, ...]
    """One sentence for each error."""
    unchecked: tuple[str, ...]
    """Settings with made-up values whose errors are ignored."""
    undefined: tuple[str, ...] = ()
    """Settings that the plugin does not define and that do not resemble a defined one. They are not errors, since a
    plugin can read settings that it does not define."""


def validate_file(connect: KafkaConnect, path: Path, known: Mapping[str, str]) -> ValidationResult:
    """Validate the file with the worker's plugin; placeholders that are not in `known` get made-up values.

    Raises:
        ConnectorConfigInvalid: the file is not a connector configuration, or violates the error policy.
        Unreachable, ConnectRequestFailed: the request to the worker fails.
    """
    filled = {name: known.get(name, _MADE_UP.get(name, name)) for name in placeholders(path)}
    config = render(path, filled)
    made_up = {setting for setting, names in placeholders_of(path).items() if names - known.keys()}
    if any(setting.startswith(_DATABASE) for setting in made_up):
        made_up |= {setting for setting in config if setting.startswith(_DATABASE)}
    found = connect.validate_config(config[CLASS], config)
    faults = [
        f"{setting}: {error.rstrip('.')}"
        for setting, errors in found.errors.items()
        if setting not in made_up
        for error in dict.fromkeys(errors)  # Debezium repeats some errors
    ]
    # A defined name can be a literal prefix with a pattern in parentheses, or a prefix of names before a dot.
    families = tuple(name.partition("(")[0] if "(" in name else f"{name}." for name in found.defined)
    undefined = []
    for setting in sorted(config.keys() - found.defined - found.errors.keys()):
        near = get_close_matches(setting, found.defined, 1, cutoff=_MISSPELT)
        if near and not setting.startswith((*_PASSED_ON, *families)):
            faults.append(f"{setting} is not a setting of {config[CLASS]}; did you mean {near[0]}?")
        elif not setting.startswith(_PASSED_ON):
            undefined.append(setting)
    unchecked = tuple(setting for setting in found.errors if setting in made_up)
    return ValidationResult(tuple(faults), unchecked, tuple(undefined))
