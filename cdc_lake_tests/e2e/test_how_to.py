"""The commands of docs/how-to, run on the demo's stack. The last module: topics, tables and columns stay changed.

Only in full runs, for six minutes; CI checks the commands' names and options (unit/docs).
Pages share a command where the same one is the next step of each, since each Spark session takes a quarter of a minute.
Each test continues from the state in which the previous one left the stack.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from cdc_lake_tests.e2e.how_to_pages import PAGES, HowToPages
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.attach import load_endpoints

TOPIC = "msk.datalake.cdc_events"
METRIC_BY_STATE = "SELECT count(*) AS n, count_if(__deleted) AS gone FROM cdc_events"
NEVER = {
    "aws quicksight describe-dashboard-definition --aws-account-id ACCOUNT --dashboard-id DASHBOARD": "needs AWS",
}
"""Commands in console blocks, and why no test runs them."""


@pytest.fixture(scope="module")
def pages(cli: CommandLine, demo: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> HowToPages:
    """Return the pages, which continue a demo."""
    assert demo["exit_code"] == 0
    return HowToPages(cli, tmp_path_factory.mktemp("how-to"))


@pytest.fixture(autouse=True)
def _seconds(request: pytest.FixtureRequest, count_trials: CountTrials) -> Iterator[None]:
    started = time.monotonic()
    yield
    count_trials(f"seconds of {request.node.name}", round(time.monotonic() - started))


@full_only
@pytest.mark.timeout(1500)
def test_a_table_is_added_in_partitions_and_its_columns_change(pages: HowToPages, cli: CommandLine) -> None:
    pages.run("yaml", "add-a-table")
    pages.run("yaml", "partition-a-table")
    pages.run("sh", "add-a-table")  # validates the YAML
    pages.run("sh", "add-a-table")  # materialises the table's source
    pages.run("sh", "add-a-table")  # materialises the table's topic
    pages.run("sh", "resnapshot")
    pages.run("sql", "change-the-schema")
    pages.run("sh", "add-a-table", "change-the-schema")  # materialises all stages
    [[products, of_first_category]] = cli.query_source(
        "select count(*), count(*) filter (where category_id = 1) from datalake.products"
    )
    pages.run("sh", "add-a-table")
    assert str(of_first_category) in pages.run("sh", "partition-a-table")
    changed = pages.run("sh", "change-the-schema")
    assert re.search(r"1 +│? *India +│? *40000", changed), changed
    in_lake = "SELECT count(*) AS n, count(DISTINCT _hoodie_partition_path) AS folders FROM products"
    assert cli.query(in_lake) == [{"n": products, "folders": 8}]


@full_only
def test_a_dashboard_is_added(pages: HowToPages, cli: CommandLine) -> None:
    pages.run("yaml", "add-a-dashboard")
    pages.run("yaml", "add-a-dashboard")
    pages.run("sh", "add-a-dashboard")
    page = cli.stack.home.path / "dashboards" / "northwind" / "products.html"
    assert "Northwind: revenue by product" in page.read_text()


@full_only
def test_an_earlier_state_is_read(pages: HowToPages) -> None:
    assert "oldest state that can be read: 2" in pages.run("sh", "read-earlier-states")
    assert "shipped_date" in pages.run("sh", "read-earlier-states")
    assert "order_id" in pages.run("sh", "read-earlier-states")
    assert " rows\n" in pages.run("sh", "read-earlier-states")


def letters(cli: CommandLine, *options: str) -> dict[str, dict[str, Any]]:
    """Return the dead letters by reason."""
    lines = cli.run("cdc-lake", "dlq", "list", "northwind", "--json", *options).stdout.splitlines()
    return {letter["reason"]: letter for letter in map(json.loads, lines)}


@full_only
def test_faults_are_found_and_dead_letters_are_corrected_dropped_and_replayed(
    pages: HowToPages, cli: CommandLine
) -> None:
    pages.run("sh", "when-something-fails")  # the engines
    pages.run("sh", "when-something-fails")  # the dead letters: none yet
    before = cli.query(METRIC_BY_STATE)
    peeked = cli.run("cdc-lake", "topic", "peek", TOPIC, "--tail", "-n", "1", "--json").stdout
    newest = json.loads(peeked)["value"]
    producer = Producer({"bootstrap.servers": load_endpoints(cli.stack.home.path).kafka_bootstrap})
    # The newest change again, with line breaks that no converter writes; half a record; a tombstone.
    for value in (json.dumps(newest, indent=1).encode(), b'{"order_id": ', None):
        producer.produce(TOPIC, key=b"poison", value=value)
    assert producer.flush(30) == 0
    # Lands and applies these records, then compares all rows, also those of the added table.
    pages.run("sh", "resnapshot", "when-something-fails")

    found = letters(cli)
    pretty, half, tombstone = (
        next(letter for reason, letter in found.items() if part in reason)
        for part in ("line break", "not a JSON object", "no value")
    )
    assert (tombstone["key"], tombstone["topic"], half["object"] is None) == ("poison", TOPIC, False)
    assert half["letter"] in pages.run("sh", "dead-letters")  # list
    assert '{"order_id": ' in pages.run("sh", "dead-letters", variables={"LETTER": half["letter"]})  # show
    pages.run("sh", "dead-letters", variables={"LETTER": half["letter"]})  # write the value to a file
    pages.write("fixed.json", json.dumps(newest).encode())
    pages.run("sh", "dead-letters", variables={"LETTER": half["letter"]})  # edit
    pages.run("sh", "dead-letters", variables={"LETTER": tombstone["letter"]})  # drop
    pages.run("sh", "dead-letters")  # replay
    assert letters(cli) == {}
    assert cli.query(METRIC_BY_STATE) == before
    assert "poison" not in pages.run("sh", "dead-letters")  # the closed ones
    closed = letters(cli, "--closed")
    assert {letter["closed"]["how"] for letter in closed.values()} == {"replayed", "dropped"}
    assert closed[pretty["reason"]]["closed"]["instant"] is not None
    pages.run("sh", "when-something-fails")


@full_only
@pytest.mark.timeout(900)
def test_the_steps_that_take_another_snapshot_work(pages: HowToPages, cli: CommandLine) -> None:
    pages.run("sql", "change-the-schema")
    pages.run("sh", "change-the-schema")  # resnapshot
    pages.run("sh", "change-the-schema")  # materialises all stages
    [[products]] = cli.query_source("select count(*) from datalake.products")
    assert str(products) in pages.run("sh", "change-the-schema")
    pages.run("sh", "partition-a-table")
    [[orders]] = cli.query_source("select count(*) from datalake.cdc_events")
    assert cli.query("SELECT count(*) AS n FROM cdc_events_current") == [{"n": orders}]
    pages.run("sh", "add-a-table")  # a new pipeline


@full_only
@pytest.mark.timeout(900)
def test_a_table_is_polled(pages: HowToPages, cli: CommandLine) -> None:
    cli.run("cdc-lake", "load", "--sample", "pagila", "--dbname", "devdb", "--yes")
    pages.run("sql", "poll-a-table")  # trigger and index
    pages.run("yaml", "poll-a-table")
    pages.run("sql", "poll-a-table")  # the file of the SELECT
    pages.run("sh", "poll-a-table")  # materialises all stages
    [[addresses]] = cli.query_source("select count(*) from address")
    assert cli.query("SELECT count(*) AS n FROM address_joined_current") == [{"n": addresses}]
    pages.run("sh", "poll-a-table")  # reconciles, and verifies


@full_only
@pytest.mark.timeout(900)
def test_personal_data_are_hidden(pages: HowToPages, cli: CommandLine) -> None:
    pages.run("sh", "hide-personal-data")  # creates a salt
    pages.run("yaml", "hide-personal-data")
    pages.run("sh", "hide-personal-data")
    assert cli.query("SELECT DISTINCT customer_id FROM cdc_events_current") == [{"customer_id": "*****"}]


@full_only
def test_every_block_of_every_page_has_run(pages: HowToPages) -> None:
    """A page without a block that runs fails, and so does a block that no test runs without a reason."""
    assert set(PAGES) == {name for name, ran in pages.ran.items() if ran}
    assert pages.left() == {}
    assert pages.consoles() == NEVER.keys()
    assert pages.other_languages() == set()
