"""Poison in the demo's topic, dealt with by the command line. Last of all: the topic keeps it."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Producer

from cdc_lake_tests.e2e.conftest import CommandLine
from infra.local.stack.attach import load_endpoints

TOPIC = "msk.datalake.cdc_events"
APPLY = ("dagster", "asset", "materialize", "-m", "cdc_lake.definitions", "--select")
STAGES = 'key:"northwind/raw/cdc_events" or key:"northwind/lake/cdc_events"'


def letters(cli: CommandLine, *options: str) -> dict[str, dict[str, Any]]:
    """The dead letters by reason."""
    lines = cli.run("cdc-lake", "dlq", "list", "northwind", "--json", *options).stdout.splitlines()
    return {letter["reason"]: letter for letter in map(json.loads, lines)}


def test_poison_is_set_aside_and_dealt_with(demo: dict[str, Any], cli: CommandLine) -> None:
    assert demo["exit_code"] == 0
    counted = "SELECT count(*) AS n, count_if(__deleted) AS gone FROM cdc_events"
    before = cli.query(counted)
    peeked = cli.run("cdc-lake", "topic", "peek", TOPIC, "--tail", "-n", "1", "--json").stdout
    newest = json.loads(peeked)["value"]
    producer = Producer({"bootstrap.servers": load_endpoints(cli.stack.home.path).kafka_bootstrap})
    # The newest change once more, as no converter spells it; half a record; a tombstone.
    for value in (json.dumps(newest, indent=1).encode(), b'{"order_id": ', None):
        producer.produce(TOPIC, key=b"poison", value=value)
    assert producer.flush(30) == 0

    cli.run(*APPLY, STAGES)

    found = letters(cli)
    pretty, half, tombstone = (
        next(letter for reason, letter in found.items() if part in reason)
        for part in ("line break", "not a JSON object", "no value")
    )
    assert cli.query(counted) == before
    assert (tombstone["key"], tombstone["topic"], half["object"] is None) == ("poison", TOPIC, False)
    assert '{"order_id": ' in cli.run("cdc-lake", "dlq", "show", "northwind", half["letter"]).stdout

    done = cli.run("cdc-lake", "dlq", "replay", "northwind", ok=False)
    assert done.returncode == 1
    assert "cdc_events: 1 applied by commit" in done.stdout
    assert letters(cli).keys() == {half["reason"], tombstone["reason"]}
    cli.run("cdc-lake", "dlq", "drop", "northwind", half["letter"], tombstone["letter"], "--yes")
    assert letters(cli) == {}
    ended = {letter["closed"]["how"] for letter in letters(cli, "--closed").values()}
    assert ended == {"replayed", "dropped"}
    assert letters(cli, "--closed")[pretty["reason"]]["closed"]["instant"] is not None
    assert cli.query(counted) == before
