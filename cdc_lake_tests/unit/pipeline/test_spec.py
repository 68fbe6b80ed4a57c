"""A pipeline's YAML: what is wrong with it is named by file, field and what is allowed, whoever reads it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.loading import load, names
from cdc_lake.pipeline.spec import PipelineSpec, seconds
from cdc_lake.yaml_model import YamlModel
from cdc_lake_tests.shop_pipeline import YAML, write_shop

Refused = Callable[[str], str]
"""Loads the shop with this YAML, which has to fail; what is said."""
_numbers = itertools.count()

IDENTIFIER = "use lower-case letters, digits and '_', at most 48 of them, not starting with a digit"
DURATION = "use a whole number up to 999999 and a unit: 30s, 5m, 12h or 7d"
SQL_FILE = "name a .sql file beside the YAML"
INTEGER = "Input should be a valid integer"

# What is replaced in the shop's YAML, by what, the field that is at fault, and what is allowed there.
FAULTS = [
    ("  catalog: shop_lake", "  catalogue: shop_lake", "catalogue", "unknown field; allowed here: name, description"),
    ("kind: log", "kind: log\n    colour: red", "source.colour", "allowed here: kind, database, schema, tables, pub"),
    ("prefix: shop }", "prefix: shop, key: a }", "stream.key", "allowed here: prefix, format, partitions"),
    ("flush_seconds: 30", "flush_second: 30", "landing.flush_second", "allowed here: format, flush_seconds, flush_rec"),
    (
        "key: [order_id]",
        "key: [order_id]\n      keys: []",
        "tables.0.keys",
        "allowed here: name, key, ordering",
    ),
    ("topic: 1m,", "topics: 1m,", "freshness.topics", "allowed here: topic, raw, lake"),
    ("  name: shop\n", "", "name", "missing; give the pipeline's name"),
    ("    kind: log\n", "", "source.kind", "missing; give outbox (a table that triggers fill) or log"),
    ("    database: shopdb\n", "", "source.database", "missing; give the database's name"),
    ("    schema: sales\n", "", "source.schema", "missing; give the schema of the tables"),
    ("    tables: [orders, customers]\n", "", "source.tables", "missing; give the tables to capture, at least one"),
    ("    publication: shop_publication\n", "", "source.publication", "missing; give the publication's name"),
    ("  stream: { prefix: shop }\n", "", "stream", "missing; give a mapping with prefix"),
    ("{ prefix: shop }", "{}", "stream.prefix", "missing; give the first part of the topics' names"),
    ("      key: [order_id]\n", "", "tables.0.key", "missing; give the primary key's columns, at least one"),
    (
        "    - name: customers\n      key:",
        "    - key:",
        "tables.1.name",
        "missing; give the table's name",
    ),
    ("name: shop\n", "name: Shop\n", "name", IDENTIFIER),
    ("name: shop\n", "name: 3shops\n", "name", IDENTIFIER),
    ("name: shop\n", f"name: {'s' * 49}\n", "name", IDENTIFIER),
    ("name: shop\n", "name: 3\n", "name", "Input should be a valid string"),
    ("name: shop\n", "name: shop\n  description: [1]\n", "description", "Input should be a valid string"),
    ("database: shopdb", 'database: "shop;db"', "source.database", IDENTIFIER),
    ("schema: sales", 'schema: "sa les"', "source.schema", IDENTIFIER),
    ("[orders, customers]", "[orders, 'c\"']", "source.tables.1", IDENTIFIER),
    ("[orders, customers]", "orders", "source.tables", "Input should be a valid"),
    ("publication: shop_publication", "publication: shop-publication", "source.publication", IDENTIFIER),
    ("prefix: shop }", "prefix: sh.op }", "stream.prefix", IDENTIFIER),
    ("key: [order_id]", "key: [Order]", "tables.0.key.0", IDENTIFIER),
    ("name: customers", "name: ../customers", "tables.1.name", IDENTIFIER),
    ("[country]", "[coun try]", "tables.1.partition_by.0", IDENTIFIER),
    ("catalog: shop_lake", "catalog: Shop", "catalog", IDENTIFIER),
    ("kind: log", "kind: query", "source.kind", "Input should be 'outbox' or 'log'"),
    ("prefix: shop }", "prefix: shop, format: avro }", "stream.format", "Input should be 'json'"),
    ("{ flush_seconds", "{ format: csv, flush_seconds", "landing.format", "Input should be 'json'"),
    ("key: [order_id]", "key: [order_id]\n      table_type: cwo", "tables.0.table_type", "Input should be 'cow'"),
    ("key: [order_id]", "key: [order_id]\n      deletes: now", "tables.0.deletes", "Input should be 'soft' or 'hard'"),
    ("key: [order_id]", "key: [order_id]\n      ordering: ts", "tables.0.ordering", "Input should be 'lsn'"),
    (
        "key: [order_id]",
        "key: [order_id]\n      values: { infinity: min }",
        "tables.0.values.infinity",
        "Input should be 'dead_letter', 'null' or 'max'",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      values: { nan: max }",
        "tables.0.values.nan",
        "Input should be 'dead_letter' or 'null'",
    ),
    ("key: [order_id]", "key: [order_id]\n      values: { nans: null }", "tables.0.values.nans", "infinity, nan"),
    ("topic: 1m,", "topic: 1 minute,", "freshness.topic", DURATION),
    ("raw: 2m,", "raw: 0m,", "freshness.raw", DURATION),
    ("lake: 10m", "lake: 1000000d", "freshness.lake", DURATION),
    ("replay_window: 12h", "replay_window: 12", "replay_window", "Input should be a valid string"),
    ("replay_window: 12h", "replay_window: 1w", "replay_window", DURATION),
    ("flush_seconds: 30", "flush_seconds: 0", "landing.flush_seconds", "greater than or equal to 1"),
    ("flush_records: 5", "flush_records: many", "landing.flush_records", INTEGER),
    ("flush_records: 5", "flush_records: 1.5", "landing.flush_records", INTEGER),
    ("flush_records: 5", "flush_records: yes", "landing.flush_records", INTEGER),
    ("flush_records: 5", "records_per_object: 0", "landing.records_per_object", "greater than or equal to 1"),
    ("prefix: shop }", "prefix: shop, partitions: 65 }", "stream.partitions", "less than or equal to 64"),
    ("limit_mb: 1", "limit_mb: -1", "retained_wal_limit_mb", "greater than or equal to 1"),
    ('["team:shop", "me@example.com"]', "[shop]", "owners.0", "name a team as team:NAME, or an e-mail address"),
    ("[totals.sql, countries.sql]", "[totals]", "datasets.0", SQL_FILE),
    ("[totals.sql, countries.sql]", "[../totals.sql]", "datasets.0", SQL_FILE),
    ("[orders_have_customers.sql]", "[orders.txt]", "source.checks.0", SQL_FILE),
    ("  catalog:", "  dashboards: [a.yml]\n  catalog:", "dashboards.0", "name a .yaml file beside defs.yaml"),
    ("[orders, customers]", "[]", "source.tables", "at least 1 item"),
    ("[order_id]", "[]", "tables.0.key", "at least 1 item"),
    ("[order_id]", "[order_id, order_id]", "tables.0.key", "name each once: order_id appears more than once"),
    ("[totals.sql, countries.sql]", "[totals.sql, totals.sql]", "datasets", "name each once: totals.sql"),
    ("[orders, customers]", "[orders]", "tables", "name the tables of source.tables, which are orders"),
    ("name: customers", "name: orders", "tables", "name each table once: orders appears more than once"),
    ("customers]", "customers, invoices]", "tables", "which are orders, customers, invoices"),
    (
        "[totals.sql, countries.sql]",
        "[orders.sql]",
        "datasets",
        "orders.sql would replace a lake table or its view; rename",
    ),
    ("[totals.sql, countries.sql]", "[orders_current.sql]", "datasets", "would replace a lake table or its view"),
    (
        "  catalog:",
        "  checks: { verify_every: sometimes }\n  catalog:",
        "checks.verify_every",
        "use off, hourly, daily",
    ),
    ("  catalog:", "  checks: { verify_every: yes }\n  catalog:", "checks.verify_every", "valid string"),
    ("topic: 1m,", "topic: 1m, runs: 59s,", "freshness.runs", "use at least 1m"),
    ("  stream: { prefix: shop }", "  stream: shop", "stream", "give a mapping with prefix, format, partitions"),
    ("- name: orders\n      key: [order_id]", "- orders", "tables.0", "give a mapping with name, key, ordering"),
]


def spoilt(old: str, new: str) -> str:
    """The shop's YAML with something else in one place."""
    assert YAML.count(old) >= 1, old
    return YAML.replace(old, new, 1)


def chain(error: BaseException) -> Iterator[str]:
    """The messages of an error and of what caused it, as Dagster's pages show them."""
    found: BaseException | None = error
    while found is not None:
        yield str(found)
        found = found.__cause__


def project(folder: Path, yaml: str) -> Path:
    """A project of Dagster's with the shop's pipeline; the folder of its definitions."""
    module = f"shop_project_{next(_numbers)}"
    (folder / "pyproject.toml").write_text(
        f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{module}"\n'
    )
    defs = folder / module / "defs"
    write_shop(defs, yaml)
    for package in (defs.parent, defs):
        (package / "__init__.py").write_text("")
    return defs


@pytest.fixture
def by_name(tmp_path: Path) -> Refused:
    """The way of the command line."""

    def refused(yaml: str) -> str:
        write_shop(tmp_path, yaml)
        with pytest.raises(ContractError) as caught:
            load("shop", tmp_path)
        return caught.value.user_message

    return refused


@pytest.fixture
def by_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """The way of the code location."""

    def refused(yaml: str) -> str:
        defs = project(tmp_path, yaml)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        with pytest.raises(Exception, match="shop") as caught:
            dg.load_from_defs_folder(path_within_project=defs)
        return "\n".join(chain(caught.value))

    return refused


def bracketed(field: str) -> str:
    """`tables[0].key` for `tables.0.key`."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in field.split(".")).removeprefix(".")


@pytest.mark.parametrize(("old", "new", "field", "allowed"), FAULTS)
def test_by_name(by_name: Refused, old: str, new: str, field: str, allowed: str) -> None:
    said = by_name(spoilt(old, new))
    assert "/shop/defs.yaml is not valid: " in said
    assert f" {bracketed(field)}: " in said
    assert allowed in said


@pytest.mark.parametrize(("old", "new", "field", "allowed"), FAULTS)
def test_by_dagster(by_dagster: Refused, old: str, new: str, field: str, allowed: str) -> None:
    said = by_dagster(spoilt(old, new))
    assert f"`attributes.{field} at " in said
    assert "/shop/defs.yaml:" in said  # and the line
    assert allowed in said


@pytest.fixture(params=["by_name", "by_dagster"])
def refused(request: pytest.FixtureRequest) -> Refused:
    """Both ways."""
    found: Refused = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("old", "new", "field", "file"),
    [
        ("[totals.sql, countries.sql]", "[none.sql]", "datasets", "none.sql"),
        ("[orders_have_customers.sql]", "[none.sql]", "source.checks", "none.sql"),
        ("  catalog:", "  dashboards: [none.yaml]\n  catalog:", "dashboards", "none.yaml"),
    ],
)
def test_a_file_that_is_not_there(by_dagster: Refused, old: str, new: str, field: str, file: str) -> None:
    said = by_dagster(spoilt(old, new))
    assert f"shop/defs.yaml is not valid: {field}: there is no file {file} in shop/" in said


def test_a_name_that_is_not_the_folders(refused: Refused) -> None:
    said = refused(spoilt("name: shop\n", "name: stall\n"))
    assert "shop/defs.yaml is not valid: name: use the folder's name, shop, not 'stall'" in said


def test_several_faults_are_told_at_once(refused: Refused) -> None:
    said = refused(spoilt("kind: log", "kind: query").replace("12h", "12w").replace("shop_lake", "Shop"))
    assert all(field in said for field in ("source.kind", "replay_window", "catalog"))


def test_what_is_no_yaml(refused: Refused) -> None:
    said = refused("type: cdc_lake.CdcPipeline\nattributes: {name: [shop}")
    assert "defs.yaml" in said
    assert "line 2" in said


@pytest.mark.parametrize("yaml", ["type: cdc_lake.CdcPipeline\n", "type: cdc_lake.CdcPipeline\nattributes:\n"])
def test_no_attributes(refused: Refused, yaml: str) -> None:
    said = refused(yaml)
    assert "defs.yaml" in said
    assert "attributes" in said


def test_a_pipeline_that_is_not_there(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with pytest.raises(ContractError, match="there is no pipeline 'stall'; there are: shop"):
        load("stall", tmp_path)
    with pytest.raises(ContractError, match="there are: none"):
        load("../shop", tmp_path / "elsewhere")


def test_another_pipeline_is_yaml_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defs = project(tmp_path, YAML)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    loaded = dg.load_from_defs_folder(path_within_project=defs)
    resources = dict.fromkeys(
        ("postgres", "kafka", "connect", "store", "spark", "glue", "athena", "deployment"),
        dg.ResourceDefinition.none_resource(),
    )
    repository = dg.Definitions.merge(loaded, dg.Definitions(resources=resources)).get_repository_def()
    graph = repository.asset_graph
    upstream = {key: graph.get(key).parent_keys for key in graph.get_all_asset_keys()}
    assert {"/".join(key.path): sorted("/".join(up.path) for up in found) for key, found in upstream.items()} == {
        "shop/source/orders": [],
        "shop/source/customers": [],
        "shop/topic/orders": ["shop/source/customers", "shop/source/orders"],
        "shop/topic/customers": ["shop/source/customers", "shop/source/orders"],
        "shop/raw/orders": ["shop/topic/orders"],
        "shop/raw/customers": ["shop/topic/customers"],
        "shop/lake/orders": ["shop/raw/orders"],
        "shop/lake/customers": ["shop/raw/customers"],
        "shop/dataset/totals": ["shop/lake/customers", "shop/lake/orders"],
        "shop/dataset/countries": ["shop/lake/customers", "shop/lake/orders"],
    }
    assert sorted(sensor.name for sensor in repository.sensor_defs) == [
        "shop_checks",
        "shop_connector",
        "shop_customers_apply",
        "shop_customers_land",
        "shop_daily_checks",
        "shop_orders_apply",
        "shop_orders_land",
        "shop_refresh",
        "shop_watch",
    ]
    assert sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")) == [
        "shop",
        "shop_apply",
        "shop_checks",
        "shop_connect",
        "shop_daily_checks",
        "shop_land",
        "shop_refresh",
    ]


def test_names_that_follow(tmp_path: Path) -> None:
    write_shop(tmp_path)
    flow = load("shop", tmp_path)
    orders, customers = flow.tables
    assert names(tmp_path) == ["shop"]
    assert (flow.connector, flow.slot) == ("cdc-lake-shop", "cdc_lake_shop")
    assert flow.heartbeat_topic == "shop.sales.cdc_heartbeat"
    assert (orders.topic, orders.view) == ("shop.sales.orders", "orders_current")
    assert orders.lake_prefix == "lake/shop/orders/"
    assert flow.retention_ms == 12 * 3600 * 1000
    assert customers.spec.partition_by == ["country"]


@pytest.mark.parametrize(
    ("yaml", "infinity", "nan"),
    [
        ("{}", "dead_letter", "dead_letter"),
        ("{ infinity: max, nan: null }", "max", "null"),
        ("{ infinity: null }", "null", "dead_letter"),
        ('{ infinity: "null", nan: dead_letter }', "null", "dead_letter"),
    ],
)
def test_what_becomes_of_values(tmp_path: Path, yaml: str, infinity: str, nan: str) -> None:
    write_shop(tmp_path, YAML.replace("key: [order_id]", f"key: [order_id]\n      values: {yaml}"))
    values = load("shop", tmp_path).tables[0].spec.values
    assert (values.infinity, values.nan) == (infinity, nan)


@pytest.mark.parametrize("written", ["6h", "off", '"off"', "hourly", "daily", "45m"])
def test_when_whole_tables_are_checked(tmp_path: Path, written: str) -> None:
    """`off` is a boolean in YAML."""
    write_shop(tmp_path, YAML.replace("  catalog:", f"  checks: {{ verify_every: {written} }}\n  catalog:"))
    assert load("shop", tmp_path).spec.checks.verify_every == written.strip('"')


@pytest.mark.parametrize(
    ("text", "expected"), [("30s", 30), ("5m", 300), ("12h", 43200), ("7d", 604800), ("daily", 86400)]
)
def test_durations(text: str, expected: int) -> None:
    assert seconds(text) == expected


def parts(model: type[YamlModel]) -> Iterator[type[YamlModel]]:
    """A part of the YAML and those below it."""
    yield model
    for field in model.model_fields.values():
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, YamlModel):
                yield from parts(kind)


def test_every_field_is_described() -> None:
    found = list(parts(PipelineSpec))
    assert len(found) == 9
    assert [name for part in found for name, field in part.model_fields.items() if not field.description] == []
