"""Errors in a pipeline's YAML name file, field and allowed values, both from the command line and from Dagster."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.automation.sensors import flush_rule
from cdc_lake.pipeline.loading import load, names
from cdc_lake.pipeline.spec.field_types import seconds
from cdc_lake.pipeline.spec.pipeline import PipelineSpec
from cdc_lake.yaml_model import YamlModel
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.unit.pipeline.spec.polled_shop import QUERY

Refused = Callable[[str], str]
"""Loads the shop with this YAML, which has to fail, and returns the message."""
_numbers = itertools.count()

IDENTIFIER = "use lower-case letters, digits and '_', at most 48 of them, not starting with a digit"
DURATION = "use a whole number up to 999999 and a unit: 30s, 5m, 12h or 7d"
SQL_FILE = "name a .sql file of the YAML's folder"
INTEGER = "Input should be a valid integer"

# Replaced text of the shop's YAML, its replacement, the invalid field, and part of the message.
FAULTS = [
    ("  targets:", "  target:", "target", "unknown field; allowed here: name, description"),
    (
        "database: shop_lake",
        "databases: shop_lake",
        "targets.0.databases",
        "allowed here: name, database, format",
    ),
    ("      database: shop_lake\n", "", "targets.0.database", "missing; give the Glue database"),
    ("database: shop_lake", "database: a\n      table_type: mow", "targets.0.table_type", "should be 'cow' or 'mor'"),
    (
        "database: shop_lake",
        "database: a\n    - { name: lake, database: b }",
        "targets",
        "each target a name of its own",
    ),
    ("database: shop_lake", "database: a\n    - { name: b, database: a }", "targets", "each target a database of its"),
    (
        "schema: sales",
        "schema: sales\n    colour: red",
        "source.colour",
        "allowed here: kind, database, schema, tables",
    ),
    ("prefix: shop }", "prefix: shop, key: a }", "stream.key", "allowed here: prefix, partitions"),
    ("prefix: shop }", "prefix: shop, format: xml }", "stream.format", "Input should be 'json' or 'avro'"),
    ("prefix: shop }", "prefix: shop, format: avro }", "stream.registry", "name it, apicurio or confluent"),
    (
        "prefix: shop }",
        "prefix: shop, registry: apicurio }",
        "stream.registry",
        "only valid with format: avro; remove it",
    ),
    ("flush_seconds: 30", "format: avro, flush_seconds: 30", "landing", "format avro requires stream.format avro"),
    ("flush_seconds: 30", "flush_second: 30", "landing.flush_second", "allowed here: format, compression, flush_"),
    (
        "flush_seconds: 30",
        "compression: gzip, flush_seconds: 30",
        "landing.compression",
        "only valid with format: parquet",
    ),
    ("flush_seconds: 30", "format: parquet, compression: lz4", "landing.compression", "'gzip', 'snappy' or 'zstd'"),
    (
        "flush_seconds: 30",
        "format: parquet, sink: { layout: lenses }",
        "landing.sink",
        "cannot write format: parquet, only the land job can; remove the sink",
    ),
    (
        "flush_seconds: 30",
        "partition_by: [country], sink: { layout: lenses }",
        "landing.partition_by",
        "not allowed with sink, whose connector decides the keys of its objects",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      landing: { sink: { layout: lenses } }",
        "tables.0.landing.sink",
        "unknown field; allowed here: format, compression, flush_seconds, flush_records, partition_by",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      landing: { partition_by: [epoch] }",
        "tables.0.landing.partition_by",
        "epoch= is a folder in the keys of all raw objects",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      landing: { compression: zstd }",
        "tables",
        "orders: landing: compression: only valid with format: parquet; remove it",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      landing: { format: avro }",
        "tables",
        "orders: landing: format avro requires stream.format avro, whose schemas it stores",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      exclude_columns: [note]\n      landing: { partition_by: [note] }",
        "tables.0.exclude_columns",
        "note is in landing.partition_by; remove note from exclude_columns",
    ),
    (
        "database: shop_lake",
        "database: a\n      format: parquet\n      deletes: soft",
        "targets.0.deletes",
        "not allowed with format: parquet, whose objects are never changed; remove it",
    ),
    ("[totals.sql, countries.sql]", "[{ sql: totals }]", "datasets.0.sql", SQL_FILE),
    (
        "[totals.sql, countries.sql]",
        "[{ sql: totals.sql, by: [a] }]",
        "datasets.0.by",
        "allowed here: sql, table",
    ),
    (
        "[totals.sql, countries.sql]",
        "[{ sql: totals.sql, table: false, partition_by: [a] }]",
        "datasets.0.partition_by",
        "not allowed with table: false; remove it",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      keys: []",
        "tables.0.keys",
        "allowed here: name, key, partition_by",
    ),
    ("topic: 1m,", "topics: 1m,", "freshness.topics", "allowed here: topic, raw, lake"),
    ("  name: shop\n", "", "name", "missing; give the pipeline's name"),
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
    ("database: shop_lake", "database: Shop", "targets.0.database", IDENTIFIER),
    (
        "database: shop_lake",
        "database: a\n      deletes: now",
        "targets.0.deletes",
        "Input should be 'soft', 'nullify' or 'hard'",
    ),
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
    ("key: [order_id]", "key: [order_id]\n      history: 90m", "tables.0.history", "use whole hours: 1h, 12h or 7d"),
    ("key: [order_id]", "key: [order_id]\n      values: { nans: null }", "tables.0.values.nans", "infinity, nan"),
    (
        "key: [order_id]",
        "key: [order_id]\n      exclude_columns: [note, order_id]",
        "tables.0.exclude_columns",
        "order_id is in key; remove order_id from exclude_columns",
    ),
    (
        "[country]",
        "[country]\n      exclude_columns: [country]",
        "tables.1.exclude_columns",
        "country is in partition_by; remove country from exclude_columns",
    ),
    (
        "key: [order_id]",
        "key: [order_id]\n      exclude_columns: [note, note]",
        "tables.0.exclude_columns",
        "name each once: note",
    ),
    (
        "key: [order_id]",
        'key: [order_id]\n      exclude_columns: [""]',
        "tables.0.exclude_columns.0",
        "name a column as the source's catalog does",
    ),
    (
        "  targets:",
        "  transforms: [{ type: hash, table: orders, columns: [order_id] }]\n  targets:",
        "transforms",
        "orders: order_id is in key, partition_by or poll, whose columns cannot be transformed",
    ),
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
    ("[totals.sql, countries.sql]", "[totals]", "datasets.0.sql", SQL_FILE),
    ("[totals.sql, countries.sql]", "[../totals.sql]", "datasets.0.sql", SQL_FILE),
    ("[orders_have_customers.sql]", "[orders.txt]", "source.checks.0", SQL_FILE),
    ("  targets:", "  dashboards: [a.yml]\n  targets:", "dashboards.0", "name a .yaml file of the YAML's folder"),
    ("[orders, customers]", "[]", "source.tables", "at least 1 item"),
    ("[order_id]", "[]", "tables.0.key", "at least 1 item"),
    ("[order_id]", "[order_id, order_id]", "tables.0.key", "name each once: order_id appears more than once"),
    ("[order_id]", "[b, a, a, b]", "tables.0.key", "name each once: a, b appear more than once"),
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
        "  targets:",
        "  checks: { verify_every: sometimes }\n  targets:",
        "checks.verify_every",
        "use off, hourly, daily",
    ),
    ("  targets:", "  checks: { verify_every: yes }\n  targets:", "checks.verify_every", "valid string"),
    ("topic: 1m,", "topic: 1m, runs: 59s,", "freshness.runs", "use at least 1m"),
    ("  stream: { prefix: shop }", "  stream: shop", "stream", "give a mapping with prefix, partitions"),
    ("- name: orders\n      key: [order_id]", "- orders", "tables.0", "give a mapping with name, key, partition_by"),
]


def with_replacement(old: str, new: str) -> str:
    """Return the shop's YAML with the first `old` replaced by `new`."""
    assert YAML.count(old) >= 1, old
    return YAML.replace(old, new, 1)


def messages(error: BaseException) -> Iterator[str]:
    """Yield the messages of an error and its causes, as Dagster's pages show them."""
    found: BaseException | None = error
    while found is not None:
        yield str(found)
        found = found.__cause__


def project(folder: Path, yaml: str) -> Path:
    """Create a Dagster project with the shop's pipeline and return the folder of its definitions."""
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
    """Load as the command line does."""

    def refused(yaml: str) -> str:
        write_shop(tmp_path, yaml)
        with pytest.raises(ContractError) as caught:
            load("shop", tmp_path)
        return caught.value.user_message

    return refused


@pytest.fixture
def by_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """Load as the code location does."""

    def refused(yaml: str) -> str:
        defs = project(tmp_path, yaml)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        with pytest.raises(Exception, match="shop") as caught:
            dg.load_from_defs_folder(path_within_project=defs)
        return "\n".join(messages(caught.value))

    return refused


def bracketed(field: str) -> str:
    """Return `tables[0].key` for `tables.0.key`."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in field.split(".")).removeprefix(".")


@pytest.mark.parametrize(("old", "new", "field", "allowed"), FAULTS)
def test_the_command_line_names_file_and_field(by_name: Refused, old: str, new: str, field: str, allowed: str) -> None:
    message = by_name(with_replacement(old, new))
    assert "/shop/defs.yaml is not valid: " in message
    assert f" {bracketed(field)}: " in message
    assert allowed in message


@pytest.mark.parametrize(("old", "new", "field", "allowed"), FAULTS)
def test_dagster_names_file_line_and_field(by_dagster: Refused, old: str, new: str, field: str, allowed: str) -> None:
    message = by_dagster(with_replacement(old, new))
    assert f"`attributes.{field} at " in message
    assert "/shop/defs.yaml:" in message  # followed by the line
    assert allowed in message


@pytest.fixture(params=["by_name", "by_dagster"])
def refused(request: pytest.FixtureRequest) -> Refused:
    """Load in both ways."""
    found: Refused = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("old", "new", "field", "file"),
    [
        ("[totals.sql, countries.sql]", "[none.sql]", "datasets", "none.sql"),
        ("[orders_have_customers.sql]", "[none.sql]", "source.checks", "none.sql"),
        ("  targets:", "  dashboards: [none.yaml]\n  targets:", "dashboards", "none.yaml"),
    ],
)
def test_a_missing_file_is_named(by_dagster: Refused, old: str, new: str, field: str, file: str) -> None:
    message = by_dagster(with_replacement(old, new))
    assert f"shop/defs.yaml is not valid: {field}: there is no file {file} in shop/" in message


def test_a_name_other_than_the_folder_is_rejected(refused: Refused) -> None:
    message = refused(with_replacement("name: shop\n", "name: store\n"))
    assert "shop/defs.yaml is not valid: name: use the folder's name, shop, not 'store'" in message


def test_several_faults_are_reported_together(refused: Refused) -> None:
    message = refused(
        with_replacement("prefix: shop }", "prefix: Shop }").replace("12h", "12w").replace("shop_lake", "Shop")
    )
    assert all(field in message for field in ("stream.prefix", "replay_window", "targets"))


def test_invalid_yaml_is_reported_with_its_line(refused: Refused) -> None:
    message = refused("type: cdc_lake.CdcPipeline\nattributes: {name: [shop}")
    assert "defs.yaml" in message
    assert "line 2" in message


@pytest.mark.parametrize("yaml", ["type: cdc_lake.CdcPipeline\n", "type: cdc_lake.CdcPipeline\nattributes:\n"])
def test_missing_attributes_are_reported(refused: Refused, yaml: str) -> None:
    message = refused(yaml)
    assert "defs.yaml" in message
    assert "attributes" in message


def test_an_unknown_pipeline_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with pytest.raises(ContractError, match="Cannot load pipeline 'store': it does not exist"):
        load("store", tmp_path)
    with pytest.raises(ContractError, match="Existing pipelines: none"):
        load("../shop", tmp_path / "elsewhere")


def test_another_pipeline_requires_only_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defs = project(tmp_path, YAML)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    loaded = dg.load_from_defs_folder(path_within_project=defs)
    resources = dict.fromkeys(
        ("postgres", "kafka", "connect", "store", "spark", "glue", "athena", "deployment", "table_threads"),
        dg.ResourceDefinition.none_resource(),
    )
    repository = dg.Definitions.merge(loaded, dg.Definitions(resources=resources)).get_repository_def()
    graph = repository.asset_graph
    upstream = {key: graph.get(key).parent_keys for key in graph.get_all_asset_keys()}
    assert {"/".join(key.path): sorted("/".join(up.path) for up in found) for key, found in upstream.items()} == {
        "shop/source/orders_source": [],
        "shop/source/customers_source": [],
        "shop/topic/orders_topic": ["shop/source/customers_source", "shop/source/orders_source"],
        "shop/topic/customers_topic": ["shop/source/customers_source", "shop/source/orders_source"],
        "shop/raw/orders_raw": ["shop/topic/orders_topic"],
        "shop/raw/customers_raw": ["shop/topic/customers_topic"],
        "shop/lake/orders_lake": ["shop/raw/orders_raw"],
        "shop/lake/customers_lake": ["shop/raw/customers_raw"],
        "shop/maintenance/orders_lake_cluster": ["shop/lake/orders_lake"],
        "shop/maintenance/orders_lake_clean": ["shop/lake/orders_lake"],
        "shop/maintenance/customers_lake_cluster": ["shop/lake/customers_lake"],
        "shop/maintenance/customers_lake_clean": ["shop/lake/customers_lake"],
        "shop/dataset/totals": ["shop/lake/customers_lake", "shop/lake/orders_lake"],
        "shop/dataset/countries": ["shop/lake/customers_lake", "shop/lake/orders_lake"],
    }
    assert sorted(sensor.name for sensor in repository.sensor_defs) == [
        "shop_apply",
        "shop_checks",
        "shop_connector",
        "shop_daily_checks",
        "shop_health",
        "shop_land",
        "shop_refresh",
    ]
    assert sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")) == [
        "shop",
        "shop_apply",
        "shop_checks",
        "shop_clean",
        "shop_cluster",
        "shop_connect",
        "shop_daily_checks",
        "shop_land",
        "shop_refresh",
    ]


def test_derived_names(tmp_path: Path) -> None:
    write_shop(tmp_path)
    pipeline = load("shop", tmp_path)
    orders, customers = pipeline.tables
    assert names(tmp_path) == ["shop"]
    assert (pipeline.connector, pipeline.slot) == ("cdc-lake-shop", "cdc_lake_shop")
    assert pipeline.heartbeat_topic == "shop.sales.cdc_heartbeat"
    assert (orders.topic, orders.view) == ("shop.sales.orders", "orders_current")
    assert orders.lake_prefix == "lake/shop/orders/"
    assert pipeline.retention_ms == 12 * 3600 * 1000
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
def test_values_default_to_dead_letters(tmp_path: Path, yaml: str, infinity: str, nan: str) -> None:
    write_shop(tmp_path, YAML.replace("key: [order_id]", f"key: [order_id]\n      values: {yaml}"))
    values = load("shop", tmp_path).tables[0].spec.values
    assert (values.infinity, values.nan) == (infinity, nan)


@pytest.mark.parametrize("verify_every", ["6h", "off", '"off"', "hourly", "daily", "45m"])
def test_verify_every_accepts_intervals_and_off(tmp_path: Path, verify_every: str) -> None:
    """Unquoted `off` is a boolean in YAML."""
    write_shop(tmp_path, YAML.replace("  targets:", f"  checks: {{ verify_every: {verify_every} }}\n  targets:"))
    assert load("shop", tmp_path).spec.checks.verify_every == verify_every.strip('"')


@pytest.mark.parametrize(
    ("text", "expected"), [("30s", 30), ("5m", 300), ("12h", 43200), ("7d", 604800), ("daily", 86400)]
)
def test_durations(text: str, expected: int) -> None:
    assert seconds(text) == expected


def nested_models(model: type[YamlModel]) -> Iterator[type[YamlModel]]:
    """Yield a model and the models of its fields, recursively."""
    yield model
    for field in model.model_fields.values():
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, YamlModel):
                yield from nested_models(kind)


def test_a_parquet_target_needs_objects_that_the_catalog_reads(by_name: Refused) -> None:
    parquet = with_replacement("database: shop_lake", "database: a\n      format: parquet")
    avro = parquet.replace("prefix: shop }", "prefix: shop, format: avro, registry: apicurio }")
    avro = avro.replace("key: [order_id]", "key: [order_id]\n      landing: { format: avro }")
    assert "targets: lake: format: parquet: land table orders as parquet or json" in by_name(avro)
    sink = parquet.replace("flush_seconds: 30", "sink: { layout: lenses }")
    assert "landing: remove sink: target lake reads objects of the land job" in by_name(sink)


def test_a_table_overrides_the_landing_of_the_pipeline(tmp_path: Path) -> None:
    yaml = with_replacement("flush_seconds: 30", "format: parquet, compression: zstd, flush_seconds: 30")
    own = "\n      landing: {{ {}, flush_records: 7, partition_by: [country] }}"
    write_shop(tmp_path, yaml.replace("key: [order_id]", "key: [order_id]" + own.format("format: json")))
    orders, customers = (table.landing for table in load("shop", tmp_path).tables)
    assert (orders.format, orders.compression, orders.partition_by) == ("json", None, ["country"])
    assert (orders.flush_records, orders.flush_seconds) == (7, 30)
    assert (customers.format, customers.compression, customers.partition_by) == ("parquet", "zstd", [])
    pipeline = load("shop", tmp_path)
    assert [table.typed_landing is not None for table in pipeline.tables] == [True, True]
    assert flush_rule.describe(pipeline) == (
        "as soon as 5 records of a table wait, or one record waits for 30 s; "
        "or as soon as 7 records of orders wait, or one record waits for 30 s"
    )
    write_shop(tmp_path, yaml.replace("key: [order_id]", "key: [order_id]" + own.format("compression: gzip")))
    assert load("shop", tmp_path).tables[0].landing.compression == "gzip"


def test_every_field_is_described() -> None:
    found = list(nested_models(PipelineSpec))
    assert len(found) == 12
    assert [name for part in found for name, field in part.model_fields.items() if not field.description] == []


QUERY_FAULTS = [
    ("poll_seconds: 5", "publication: p", "source.publication", "only valid with kind: log; remove it"),
    ("poll_seconds: 5", "tables: [orders]", "source.tables", "only valid with kind: log; remove it"),
    ("poll_seconds: 5", "poll_seconds: 0", "source.poll_seconds", "greater than or equal to 1"),
    ("kind: query", "kind: outbox", "source.kind", "Input should be 'log' or 'query'"),
    ("prefix: shop }", "prefix: shop, format: avro, registry: apicurio }", "stream", "use format json with"),
    ("prefix: shop }", "prefix: shop }\n  mode: continuous", "mode", "use triggered with source.kind query"),
    (
        "prefix: shop }",
        "prefix: shop }\n  landing: { sink: { layout: lenses } }",
        "landing",
        "remove sink: the land",
    ),
    (
        "prefix: shop }",
        "prefix: shop }\n  retained_wal_limit_mb: 9",
        "retained_wal_limit_mb",
        "has no replication slot",
    ),
    (
        "      poll: { mode: timestamp, timestamp: changed }\n",
        "",
        "tables",
        "orders: add the field poll; source.kind query",
    ),
    ("topic: alt.orders", "topic: orders", "tables", "give each table a topic of its own: orders"),
    ("topic: alt.orders", "topic: alt orders", "tables.1.topic", "use letters, digits, '.', '_' and '-'"),
    ("key: [order_id]", "key: [order_id]\n      exclude_columns: [changed]", "tables.0.exclude_columns", "is in poll"),
    (
        "topic: alt.orders",
        "exclude_columns: [note]",
        "tables.1.exclude_columns",
        "not allowed: order_countries.sql selects the columns",
    ),
    (
        "  stream:",
        "  transforms: [{ type: MaskField, table: orders, columns: [changed] }]\n  stream:",
        "transforms",
        "orders: changed is in key, partition_by or poll",
    ),
    (
        "  stream:",
        "  transforms: [{ type: ReplaceField, exclude: [note] }]\n  stream:",
        "transforms",
        "exclude lists column note, but order_countries.sql selects the columns",
    ),
    ("sql: order_countries.sql", "sql: ../a.sql", "tables.1.poll.sql", SQL_FILE),
    ("timestamp, timestamp: changed }", "timestamp }", "tables.0.poll.timestamp", "name the column for mode timestamp"),
    (
        "timestamp: changed }",
        "timestamp: changed, incrementing: id }",
        "tables.0.poll.incrementing",
        "not allowed with mode timestamp; remove it",
    ),
    (
        "timestamp, timestamp: changed }",
        "incrementing, incrementing: id, time_zone: UTC }",
        "tables.0.poll.time_zone",
        "without timestamp",
    ),
    ("timestamp: changed }", "timestamp: changed, time_zone: 'a b' }", "tables.0.poll.time_zone", "name a time zone"),
]


@pytest.mark.parametrize(("old", "new", "field", "allowed"), QUERY_FAULTS)
def test_fields_of_the_other_kind_are_refused(tmp_path: Path, old: str, new: str, field: str, allowed: str) -> None:
    assert old in QUERY
    write_shop(tmp_path, QUERY.replace(old, new, 1))
    with pytest.raises(ContractError) as caught:
        load("shop", tmp_path)
    assert f" {bracketed(field)}: " in caught.value.user_message
    assert allowed in caught.value.user_message


@pytest.mark.parametrize(
    ("old", "new", "field", "allowed"),
    [
        ("schema: sales", "schema: sales\n    poll_seconds: 5", "source.poll_seconds", "only valid with kind: query"),
        ("key: [order_id]", "key: [order_id]\n      poll: { timestamp: c }", "tables", "orders: remove poll"),
        ("key: [order_id]", "key: [order_id]\n      topic: other", "tables", "orders: remove topic"),
    ],
)
def test_fields_of_polling_need_kind_query(by_name: Refused, old: str, new: str, field: str, allowed: str) -> None:
    message = by_name(with_replacement(old, new))
    assert f" {bracketed(field)}: " in message
    assert allowed in message


def test_a_polled_table_can_have_another_topic_and_table_than_its_name(tmp_path: Path) -> None:
    write_shop(tmp_path, QUERY)
    pipeline = load("shop", tmp_path)
    assert [table.topic for table in pipeline.tables] == ["shop.sales.orders", "shop.sales.alt.orders"]
    assert [table.polled_table for table in pipeline.tables] == ["orders", "orders"]
    assert pipeline.own_topics == ()
