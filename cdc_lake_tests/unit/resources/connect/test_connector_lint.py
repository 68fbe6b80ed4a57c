"""Lint of connector configurations without their plugins: shipped files pass, and mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.connect.config_template import placeholders, render
from resources.connect.connector_lint import Settings

CONNECTORS = Path(__file__).parents[4] / "connectors"
SINKS = sorted(CONNECTORS.glob("s3-sink-*.json"))
SETTINGS = Settings.read(CONNECTORS / "settings")


def filled(path: Path) -> dict[str, str]:
    """Return a configuration with each placeholder filled with its own name."""
    return render(path, {name: name for name in placeholders(path)})


def sink(vendor: str) -> dict[str, str]:
    """Return the shipped configuration of this vendor's sink."""
    return filled(CONNECTORS / f"s3-sink-{vendor}.json")


@pytest.mark.parametrize("path", SINKS, ids=lambda path: path.stem)
def test_every_shipped_sink_is_valid(path: Path) -> None:
    config = filled(path)
    assert config["connector.class"] in SETTINGS.classes
    assert list(SETTINGS.faults(config)) == []
    assert placeholders(path) == {"topic", "bucket", "prefix", "region"}
    # Aborted records must not be read; records from before the sink must.
    assert config["consumer.override.isolation.level"] == "read_committed"
    assert config["consumer.override.auto.offset.reset"] == "earliest"


def test_there_is_a_sink_of_each_vendor() -> None:
    assert {filled(path)["connector.class"] for path in SINKS} == SETTINGS.classes.keys()


@pytest.mark.parametrize(
    ("vendor", "changes", "message"),
    [
        ("confluent", {"flush.size": None}, "flush.size is missing"),
        ("confluent", {"flush.size": "0"}, "flush.size is '0', which does not fit '[1-9][0-9]*'"),
        ("confluent", {"behavior.on.null.values": "write"}, "behavior.on.null.values is 'write'; allowed: fail"),
        ("confluent", {"s3.bucket.nmae": "b"}, "; is s3.bucket.name meant?"),
        ("aiven", {"format.output.envelope": "yes"}, "format.output.envelope is 'yes'; allowed: true, false"),
        (
            "aiven",
            {"format.output.envelope": "true"},
            "format.output.fields is 'value', which does not fit '(.*,)?offset(,.*)?' where format.output.envelope is "
            "'true'",
        ),
        (
            "aiven",
            {"format.output.fields": "value,offset"},
            "format.output.fields is 'value,offset', which does not fit 'value' where format.output.envelope is",
        ),
        ("lenses", {"connect.s3.error.policy": "THROWS"}, "connect.s3.error.policy is 'THROWS'; allowed: THROW, RETRY"),
        (
            "lenses",
            {"connect.s3.kcql": "INSERT INTO b SELECT * FROM t"},
            "connect.s3.kcql is 'INSERT INTO b SELECT * FROM t', which does not fit",
        ),
        ("lenses", {"tasks.max": "many"}, "tasks.max is 'many'"),
    ],
)
def test_a_mistake_is_named(vendor: str, changes: dict[str, str | None], message: str) -> None:
    changed = {name: value for name, value in {**sink(vendor), **changes}.items() if value is not None}
    (found,) = SETTINGS.faults(changed)
    assert message in found


def test_setting_families_accept_any_suffix() -> None:
    extra = {"transforms.a.type": "x", "consumer.override.max.poll.records": "5", "value.converter.x": "y"}
    assert list(SETTINGS.faults({**sink("aiven"), **extra})) == []


def test_an_unknown_class_is_not_checked() -> None:
    assert list(SETTINGS.faults({"connector.class": "io.debezium.connector.postgresql.PostgresConnector"})) == []
