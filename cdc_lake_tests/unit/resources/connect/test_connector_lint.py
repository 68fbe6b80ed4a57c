"""Lint of connector configurations without their plugins: shipped files pass, and mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.connect.config_template import placeholders, render
from resources.connect.connector_lint import Settings
from resources.connect.error_policy import require_policy

CONNECTORS = Path(__file__).parents[4] / "connectors"
SINKS = sorted(CONNECTORS.glob("s3-sink-*.json"))
SOURCES = sorted(CONNECTORS.glob("jdbc-source-*.json"))
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


def test_there_is_a_file_of_each_class() -> None:
    assert {filled(path)["connector.class"] for path in (*SINKS, *SOURCES)} == SETTINGS.classes.keys()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_shipped_jdbc_source_is_valid(path: Path) -> None:
    config = filled(path)
    assert list(SETTINGS.faults(config)) == []
    require_policy(path.name, config)
    of_table = {"query", "topic"} if "query" in path.stem else {"schema", "table", "prefix"}
    login = {"host", "port", "database", "user", "password"}
    assert placeholders(path) == {*login, *of_table, "key", "timestamp", "partitions", "retention_ms"}
    # The key is one value, as in the topics of the original.
    assert config["transforms"] == "toKey,extractKey,topic"
    assert config["transforms.toKey.fields"] == config["transforms.extractKey.field"] == "key"


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("jdbc-source-aiven", {"mode": "bulk"}, "mode is 'bulk'; allowed: timestamp, incrementing, timestamp+increm"),
        ("jdbc-source-aiven", {"timestamp.delay.interval.ms": "0"}, "timestamp.delay.interval.ms is '0', which does"),
        ("jdbc-source-aiven", {"timestamp.delay.interval.ms": None}, "timestamp.delay.interval.ms is missing"),
        ("jdbc-source-aiven", {"validate.non.null": "false"}, "validate.non.null is 'false'; allowed: true"),
        ("jdbc-source-aiven", {"timestamp.column.name": None}, "timestamp.column.name is ''; if mode is 'timestamp'"),
        (
            "jdbc-source-aiven",
            {"mode": "timestamp+incrementing"},
            "incrementing.column.name is ''; if mode is 'timestamp+incrementing', it must match '.+'",
        ),
        ("jdbc-source-aiven", {"value.converter.decimal.format": None}, "value.converter.decimal.format is ''"),
        ("jdbc-source-aiven", {"connection.url": "jdbc:postgresql://h:5432/d"}, "connection.url is 'jdbc:postgresql"),
        ("jdbc-source-aiven", {"table.whitlist": "a"}, "; did you mean table.whitelist?"),
        ("jdbc-source-aiven-query", {"query": "SELECT a FROM t WHERE b"}, "query is 'SELECT a FROM t WHERE b'"),
    ],
)
def test_a_mistake_in_a_jdbc_source_is_named(file: str, changes: dict[str, str | None], message: str) -> None:
    shipped = filled(CONNECTORS / f"{file}.json")
    changed = {name: value for name, value in {**shipped, **changes}.items() if value is not None}
    (found,) = SETTINGS.faults(changed)
    assert message in found


@pytest.mark.parametrize(
    ("vendor", "changes", "message"),
    [
        ("confluent", {"flush.size": None}, "flush.size is missing"),
        ("confluent", {"flush.size": "0"}, "flush.size is '0', which does not match '[1-9][0-9]*'"),
        ("confluent", {"behavior.on.null.values": "write"}, "behavior.on.null.values is 'write'; allowed: fail"),
        ("confluent", {"s3.bucket.nmae": "b"}, "; did you mean s3.bucket.name?"),
        ("aiven", {"format.output.envelope": "yes"}, "format.output.envelope is 'yes'; allowed: true, false"),
        (
            "aiven",
            {"format.output.envelope": "true"},
            "format.output.fields is 'value'; if format.output.envelope is 'true', it must match '(.*,)?offset(,.*)?'",
        ),
        (
            "aiven",
            {"format.output.fields": "value,offset"},
            "format.output.fields is 'value,offset'; if format.output.envelope is 'false', it must match 'value'",
        ),
        ("lenses", {"connect.s3.error.policy": "THROWS"}, "connect.s3.error.policy is 'THROWS'; allowed: THROW, RETRY"),
        (
            "lenses",
            {"connect.s3.kcql": "INSERT INTO b SELECT * FROM t"},
            "connect.s3.kcql is 'INSERT INTO b SELECT * FROM t', which does not match",
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
