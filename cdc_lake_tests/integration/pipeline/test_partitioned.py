"""A partitioned table, from raw objects to Athena: written, registered with its partitions, read through the view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import Flow, TableFlow, location
from cdc_lake.pipeline.spec import TableSpec
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
FLOW = Flow(load("northwind").spec.model_copy(update={"name": "parted", "catalog": "parted"}), Path("parted"))
TABLE = TableFlow(FLOW, TableSpec(name="orders", key=["id"], partition_by=["customer"]))
# No quote: the stand-in for Glue does not read one in a filter.
HOSTILE = ("a/b", "../up", "k=v", "100 %", "%2F", "Ω: [it]", "\\N", "null", " ")


@pytest.fixture(scope="module")
def engines(query_stack: QueryStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """S3 and Spark; no Kafka, since these tests land by themselves."""
    at = query_stack.at
    secret = at.s3_secret_key.get_secret_value()
    store = ObjectStore(
        bucket=at.bucket,
        endpoint_url=at.s3_endpoint,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=secret,
    )
    with running_spark(at, store, tmp_path_factory.mktemp("spark")) as session:
        yield Engines(location(store), Kafka(bootstrap=at.kafka_bootstrap), session)


def order(number: int, customer: str | None, total: str, lsn: int, op: str = "c") -> dict[str, Any]:
    """A streamed change of an order."""
    return {
        **{"id": number, "customer": customer, "total": total},
        **{"__op": op, "__db": "shop", "__schema": "public", "__table": "orders", "__lsn": lsn, "__txId": lsn},
        **{"__snapshot": None, "__source_ts_ms": 1_700_000_000_000, "__deleted": "true" if op == "d" else "false"},
    }


def test_keys_stay_unique_over_partitions(engines: Engines, query_stack: QueryStack) -> None:
    at = query_stack.at
    aws: dict[str, Any] = {
        "endpoint_url": at.aws_endpoint,
        "access_key": at.s3_access_key,
        "secret_key": at.s3_secret_key.get_secret_value(),
    }
    glue, athena = GlueCatalog(**aws), Athena(**aws, database="parted", output_location=f"s3://{at.bucket}/athena/")
    table = LakeTable(engines, "parted", COLUMNS, ["id"])
    spec = replace(table.spec, partition_by=("customer",))

    def carry(*events: dict[str, Any]) -> list[tuple[object, ...]]:
        table.deliver(events)
        table.upsert(spec)
        uri = f"s3://{at.bucket}/{spec.prefix.rstrip('/')}"
        register(TABLE, table.lake_columns(), glue, athena, table.store, uri)
        assert not register(TABLE, table.lake_columns(), glue, athena, table.store, uri)
        return list(athena.query("SELECT id, customer, CAST(total AS varchar) FROM orders_current ORDER BY id").rows)

    assert carry(order(1, "ANNE", "1.00", 10), order(2, "BERT", "2.00", 11), order(3, "ANNE", "3.00", 12)) == [
        (1, "ANNE", "1.00"),
        (2, "BERT", "2.00"),
        (3, "ANNE", "3.00"),
    ]
    # A key moves to a partition that is new, another one is deleted, and an older change of the first comes late.
    assert carry(
        order(1, "CARL", "1.50", 20, "u"), order(3, "ANNE", "3.00", 21, "d"), order(2, "BERT", "2.50", 22, "u")
    ) == [(1, "CARL", "1.50"), (2, "BERT", "2.50")]
    assert carry(order(1, "ANNE", "1.25", 15, "u")) == [(1, "CARL", "1.50"), (2, "BERT", "2.50")]
    assert athena.query('SELECT count(*), count(DISTINCT id) FROM "parted"."orders"').rows == ((3, 3),)

    # Whatever the value: it is no path, and no other value's partition.
    rows = [(10 + at, customer) for at, customer in enumerate(HOSTILE)]
    carried = carry(*(order(key, customer, "9.00", 30 + key) for key, customer in rows))
    assert carried[2:] == [(key, customer, "9.00") for key, customer in rows]
    assert {row["id"]: row["customer"] for row in table.by_spark() if cast("int", row["id"]) >= 10} == dict(rows)
    for key, customer in rows:
        assert athena.query(f"SELECT id FROM orders_current WHERE customer = '{customer}'").rows == ((key,),)
    # And they move out of there.
    moved = carry(*(order(key, "ANNE", "9.50", 60 + key, "u") for key, _ in rows))
    assert moved[2:] == [(key, "ANNE", "9.50") for key, _ in rows]

    # NULL and '' are one partition to Hive: told by name, but for rows that nobody sees any more.
    gone = [order(key, None, "9.50", 90, "d") for key, _ in rows]
    assert carry(*gone, order(50, None, "1.00", 91), order(51, "", "1.00", 92)) == moved[:2]
    letters = list(dead_letters.letters(table.store, table.name))
    assert {letter.reason for letter in letters} == {
        "the partition column customer is NULL or empty, which readers cannot distinguish"
    }
    assert len(letters) == 2
