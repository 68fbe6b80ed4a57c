"""A partitioned table, from raw objects to Athena: upserted, registered with its partitions, read through the view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spec.table import TableSpec
from cdc_lake.pipeline.spec.target import TargetSpec
from cdc_lake_tests.integration.conftest import QueryStack
from cdc_lake_tests.integration.jobs.engines import Engines, running_spark
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

COLUMNS = [
    Column(name="id", type="integer", nullable=False),
    Column(name="customer", type="text"),
    Column(name="total", type="numeric(6,2)"),
]
# Without quotes, which the emulated Glue cannot parse in a filter.
HOSTILE = ("a/b", "../up", "k=v", "100 %", "%2F", "Ω: [it]", "null", " ")

NULL_TEXTS = ("", "__HIVE_DEFAULT_PARTITION__", "\\N")


def pipeline_table(name: str) -> PipelineTable:
    """Return the table of orders, partitioned by customer, of a pipeline with this name."""
    target = TargetSpec(name="lake", database=name)
    pipeline = Pipeline(load("northwind").spec.model_copy(update={"name": name, "targets": [target]}), Path(name))
    return PipelineTable(pipeline, TableSpec(name="orders", key=["id"], partition_by=["customer"]), target)


TABLE = pipeline_table("parted")


@pytest.fixture(scope="module")
def spark_on_query_stack(query_stack: QueryStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Run S3 and Spark; Kafka is not needed, since these tests write the raw objects."""
    at = query_stack.at
    secret = at.s3_secret_key.get_secret_value()
    store = ObjectStore(
        bucket=at.bucket,
        endpoint_url=at.s3_endpoint,
        access_key=at.s3_access_key,
        secret_key=secret,
    )
    with running_spark(at, store, tmp_path_factory.mktemp("spark")) as session:
        yield Engines(location(store), Kafka(bootstrap=at.kafka_bootstrap), session)


def order(number: int, customer: object, total: str, lsn: int, op: str = "c") -> dict[str, Any]:
    """Return a streamed change of an order."""
    return {
        **{"id": number, "customer": customer, "total": total},
        **{"__op": op, "__db": "shop", "__schema": "public", "__table": "orders", "__lsn": lsn, "__txId": lsn},
        **{"__snapshot": None, "__source_ts_ms": 1_700_000_000_000, "__deleted": "true" if op == "d" else "false"},
    }


def test_keys_stay_unique_over_partitions(spark_on_query_stack: Engines, query_stack: QueryStack) -> None:
    at = query_stack.at
    aws: dict[str, Any] = {
        "endpoint_url": at.aws_endpoint,
        "access_key": at.s3_access_key,
        "secret_key": at.s3_secret_key.get_secret_value(),
    }
    glue, athena = GlueCatalog(**aws), Athena(**aws, database="parted", output_location=f"s3://{at.bucket}/athena/")
    table = LakeTable(spark_on_query_stack, "parted", COLUMNS, ["id"])
    spec = replace(table.spec, partition_by=("customer",))

    def land_and_read(*events: dict[str, Any]) -> list[tuple[object, ...]]:
        table.deliver(events)
        table.upsert(spec)
        uri = f"s3://{at.bucket}/{spec.prefix.rstrip('/')}"
        commit = timeline.last_commit(table.store, TABLE.lake_prefix)
        register(TABLE, table.lake_columns(), glue, athena, table.store, uri, commit)
        assert not register(TABLE, table.lake_columns(), glue, athena, table.store, uri, commit)
        return list(athena.query("SELECT id, customer, CAST(total AS varchar) FROM orders_current ORDER BY id").rows)

    assert land_and_read(order(1, "ANNE", "1.00", 10), order(2, "BERT", "2.00", 11), order(3, "ANNE", "3.00", 12)) == [
        (1, "ANNE", "1.00"),
        (2, "BERT", "2.00"),
        (3, "ANNE", "3.00"),
    ]
    # One key moves to a new partition, another one is deleted; then an older change of the first key arrives.
    assert land_and_read(
        order(1, "CARL", "1.50", 20, "u"), order(3, "ANNE", "3.00", 21, "d"), order(2, "BERT", "2.50", 22, "u")
    ) == [(1, "CARL", "1.50"), (2, "BERT", "2.50")]
    assert land_and_read(order(1, "ANNE", "1.25", 15, "u")) == [(1, "CARL", "1.50"), (2, "BERT", "2.50")]
    assert athena.query('SELECT count(*), count(DISTINCT id) FROM "parted"."orders"').rows == ((3, 3),)

    # No value is used as a path, and each value has its own partition.
    rows = [(10 + at, customer) for at, customer in enumerate(HOSTILE)]
    visible = land_and_read(*(order(key, customer, "9.00", 30 + key) for key, customer in rows))
    assert visible[2:] == [(key, customer, "9.00") for key, customer in rows]
    assert {row["id"]: row["customer"] for row in table.by_spark() if cast("int", row["id"]) >= 10} == dict(rows)
    for key, customer in rows:
        assert athena.query(f"SELECT id FROM orders_current WHERE customer = '{customer}'").rows == ((key,),)
    # The rows move to another partition.
    moved = land_and_read(*(order(key, "ANNE", "9.50", 60 + key, "u") for key, _ in rows))
    assert moved[2:] == [(key, "ANNE", "9.50") for key, _ in rows]

    # NULL has a partition; what Hive stores in it too becomes a dead letter, unless it is deleted.
    deletes = [order(key, None, "9.50", 90, "d") for key, _ in rows]
    same = [order(60 + n, text, "1.00", 92 + n) for n, text in enumerate(NULL_TEXTS)]
    without = (order(50, None, "1.00", 91), order(2, None, "2.75", 98, "u"))
    read = land_and_read(*deletes, *without, *same)
    assert read == [(1, "CARL", "1.50"), (2, None, "2.75"), (50, None, "1.00")]
    assert {row["id"]: row["customer"] for row in table.by_spark() if row["id"] in {2, 50}} == {2: None, 50: None}
    assert athena.query("SELECT id FROM orders_current WHERE customer IS NULL ORDER BY id").rows == ((2,), (50,))
    assert {letter.reason for letter in dead_letters.letters(table.store, table.name)} == {
        f"the partition column customer is '{text}', which readers return as NULL" for text in NULL_TEXTS
    }
    # Out of the partition of NULL, and an older change into it.
    assert land_and_read(order(50, "ANNE", "1.10", 100, "u"), order(1, None, "0.00", 5, "u")) == [
        *((1, "CARL", "1.50"), (2, None, "2.75"), (50, "ANNE", "1.10"))
    ]


@pytest.mark.parametrize(("kind", "value"), [("smallint", 5), ("date", 19000), ("boolean", True)])
def test_a_deleted_row_without_a_partition_value_leaves_the_table_readable(
    spark_on_query_stack: Engines, query_stack: QueryStack, kind: str, value: object
) -> None:
    at, name = query_stack.at, f"parted_by_{kind}"
    aws: dict[str, Any] = {
        "endpoint_url": at.aws_endpoint,
        "access_key": at.s3_access_key,
        "secret_key": at.s3_secret_key.get_secret_value(),
    }
    glue, athena = GlueCatalog(**aws), Athena(**aws, database=name, output_location=f"s3://{at.bucket}/athena/")
    registered = pipeline_table(name)
    table = LakeTable(spark_on_query_stack, name, [COLUMNS[0], Column(name="customer", type=kind), COLUMNS[2]], ["id"])
    spec = replace(table.spec, partition_by=("customer",))
    # A row whose partition column became NULL is a dead letter, and its delete has that value.
    table.deliver([order(1, value, "1.00", 10), order(2, value, "2.00", 11), order(3, None, "3.00", 12)])
    table.upsert(spec)
    table.deliver([order(2, None, "2.00", 20, "d"), order(3, None, "3.00", 21, "d")])
    table.upsert(spec)
    uri = f"s3://{at.bucket}/{spec.prefix.rstrip('/')}"
    commit = timeline.last_commit(table.store, registered.lake_prefix)
    register(registered, table.lake_columns(), glue, athena, table.store, uri, commit)
    assert [row[0] for row in athena.query("SELECT id, customer FROM orders_current").rows] == [1]
    assert athena.query("SELECT id FROM orders WHERE __deleted ORDER BY id").rows == ((2,), (3,))
