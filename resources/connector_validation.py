"""A connector's data file as its own plugin judges it: what a worker says of it, with the placeholders filled.

Where a placeholder is filled with something that was made up, an error says nothing of the file: those settings are
named, and not judged. So are all settings of the database where one is made up, since Debezium tells by
`database.hostname` whatever keeps it from looking at the database. A setting that the plugin does not define is a fault
where it resembles one that it defines: the others may be among those that it reads without defining them.
Here: filling, and reading the worker's answer. Not here: asking (kafka_connect.py), and connectors whose plugin is not
there (connector_lint.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from resources.connector_config import placeholders, placeholders_of, render
from resources.kafka_connect import KafkaConnect

CLASS = "connector.class"
# Nothing listens at this address: the plugin gets its refusal at once.
_MADE_UP = {"host": "127.0.0.1", "port": "1", "partitions": "1", "retention_ms": "604800000"}
_DATABASE = "database."
# Begin names that Connect and Debezium hand on: to converters, to clients, to topics that Connect makes, to the driver.
_HANDED_ON = (
    *("key.converter.", "value.converter.", "header.converter."),
    *("producer.override.", "consumer.override.", "admin.override."),
    *("topic.creation.", "driver."),
)
_RESEMBLES = 0.85


@dataclass(frozen=True)
class Verdict:
    """What the plugin says of a file, a sentence each."""

    faults: tuple[str, ...]
    notes: tuple[str, ...]
    """What was not judged, and why."""


def judge(connect: KafkaConnect, path: Path, known: Mapping[str, str]) -> Verdict:
    """Ask the plugin on the worker; `known` are placeholders' real values, the others' are made up.

    Raises:
        ConnectorConfigInvalid: the file is none of a connector, or no error policy.
        Unreachable, ConnectRequestFailed: the worker can't be asked.
    """
    config = render(path, {name: known.get(name, _MADE_UP.get(name, name)) for name in placeholders(path)})
    made_up = {setting for setting, names in placeholders_of(path).items() if names - known.keys()}
    if any(setting.startswith(_DATABASE) for setting in made_up):
        made_up |= {setting for setting in config if setting.startswith(_DATABASE)}
    found = connect.validate_config(config[CLASS], config)
    faults = [
        f"{setting}: {error.rstrip('.')}"
        for setting, errors in found.errors.items()
        if setting not in made_up
        for error in dict.fromkeys(errors)
    ]
    undefined = sorted(config.keys() - found.defined - found.errors.keys())
    slips = dict(_slips(undefined, found.defined))
    faults += [f"{setting} is no setting of {config[CLASS]}; is {meant} meant?" for setting, meant in slips.items()]
    return Verdict(
        tuple(faults),
        (
            *_note("its value is made up", [setting for setting in found.errors if setting in made_up]),
            *_note(
                "the plugin does not define it",
                [name for name in undefined if name not in slips and not name.startswith(_HANDED_ON)],
            ),
        ),
    )


def _slips(settings: list[str], defined: Set[str]) -> Iterator[tuple[str, str]]:
    """Those that are most likely misspelled, with what is meant."""
    # A definition can be a pattern, which begins with a name, or be of all names that begin with it and a dot.
    beginnings = tuple(name.partition("(")[0] if "(" in name else f"{name}." for name in defined)
    for setting in settings:
        near = get_close_matches(setting, defined, 1, _RESEMBLES)
        if near and not setting.startswith((*_HANDED_ON, *beginnings)):
            yield setting, near[0]


def _note(why: str, settings: list[str]) -> Iterator[str]:
    if settings:
        yield f"not judged, since {why}: {', '.join(settings)}"
