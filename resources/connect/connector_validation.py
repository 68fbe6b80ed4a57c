"""A connector's data file as its own plugin judges it: what a worker says of it, with the placeholders filled.

Where a placeholder is filled with something that was made up, an error says nothing of the file: those settings are
named, and not judged. So are all settings of the database where one is made up, since Debezium tells by
`database.hostname` whatever keeps it from looking at the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from resources.connect.connector_config import placeholders, placeholders_of, render
from resources.connect.kafka_connect import KafkaConnect

CLASS = "connector.class"
# Nothing listens at this address: the plugin gets its refusal at once.
_MADE_UP = {
    "host": "127.0.0.1",
    "port": "1",
    "partitions": "1",
    "retention_ms": "604800000",
    "exactly_once": "requested",
    "record_bytes": "1048576",
}
_DATABASE = "database."
# Begin names that Connect and Debezium hand on: to converters, to clients, to topics that Connect makes, to the driver.
_HANDED_ON = (
    *("key.converter.", "value.converter.", "header.converter."),
    *("producer.override.", "consumer.override.", "admin.override."),
    *("topic.creation.", "driver.", "internal."),
)


_MISSPELT = 0.85
"""From here on (of 1) difflib finds two names so alike that one is taken for the other misspelt."""


@dataclass(frozen=True)
class Verdict:
    """What the plugin says of a file."""

    faults: tuple[str, ...]
    """A sentence each."""
    not_judged: tuple[str, ...]
    """The settings whose errors are about made-up values."""
    undefined: tuple[str, ...] = ()
    """Settings that the plugin does not define and that are like none of its own: it may read more than it defines."""


def judge(connect: KafkaConnect, path: Path, known: Mapping[str, str]) -> Verdict:
    """Ask the plugin on the worker; `known` are placeholders' real values, the others' are made up.

    Raises:
        ConnectorConfigInvalid: the file is none of a connector, or no error policy.
        Unreachable, ConnectRequestFailed: the worker can't be asked.
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
        for error in dict.fromkeys(errors)  # Debezium tells some twice
    ]
    # A definition can be a pattern, which begins with a name, or be of all names that begin with it and a dot.
    families = tuple(name.partition("(")[0] if "(" in name else f"{name}." for name in found.defined)
    undefined = []
    for setting in sorted(config.keys() - found.defined - found.errors.keys()):
        near = get_close_matches(setting, found.defined, 1, cutoff=_MISSPELT)
        if near and not setting.startswith((*_HANDED_ON, *families)):
            faults.append(f"{setting} is no setting of {config[CLASS]}; is {near[0]} meant?")
        elif not setting.startswith(_HANDED_ON):
            undefined.append(setting)
    not_judged = tuple(setting for setting in found.errors if setting in made_up)
    return Verdict(tuple(faults), not_judged, tuple(undefined))
