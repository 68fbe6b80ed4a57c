"""Topics in Avro: records that cannot be decoded, a changed schema, and a registry that does not answer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.jobs.maintenance import replay
from cdc_lake.pipeline import loading, table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_applied
from cdc_lake.pipeline.registry_location import registry_location
from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

TRANSFORMS = """
  transforms:
    - { type: ReplaceField, at: landing, renames: { v: label } }
    - { type: InsertField, at: landing, static: { environment: test } }
    - { type: Cast, at: landing, spec: { small: string } }
"""
UNKNOWN_ID = b"\x00\x00\x0f\x42\x3fx"


def objects(pipeline: ChainPipeline) -> list[tuple[str, int]]:
    """Return the extension and the number of records of each raw object."""
    manifests = table_progress.manifests(pipeline.store, pipeline.table("goods"))
    return [(item.key.rpartition(".")[2], item.records) for each in manifests for item in each.objects]


def printed(*command: str) -> list[str]:
    """Run a command of the command line, and return its lines."""
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_records_in_avro(new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = new_pipeline("containers", {"goods": ""}, formats=("avro", "avro"), more=TRANSFORMS)
    pipeline.execute("create table goods (id int primary key, v text, small smallint)")
    pipeline.execute("insert into goods values (1, 'one', 7)")
    pipeline.materialise()
    topic = pipeline.table("goods").topic
    monkeypatch.setattr(loading, "load", lambda _name: pipeline.loaded)

    # A changed schema has another id, and another object.
    pipeline.execute(
        "update goods set v = 'uno'; alter table goods add column n numeric; "
        "insert into goods values (2, 'two', null, 0.5)"
    )
    [first, *_] = pipeline.resources["kafka"].peek(topic)
    producer = Producer({"bootstrap.servers": pipeline.resources["kafka"].bootstrap})
    for bad in (UNKNOWN_ID, b'{"id": 3}', first.value[:-1]):
        producer.produce(topic, bad)
    assert producer.flush(30) == 0
    pipeline.materialise("source")
    pipeline.land_and_apply()
    assert objects(pipeline) == [("avro", 1), ("avro", 1), ("avro", 1)]
    rows = pipeline.by_spark("goods")
    assert {key: (row["label"], row["small"], str(row["n"]), row["environment"]) for key, row in rows.items()} == {
        1: ("uno", "7", "None", "test"),
        2: ("two", None, "0.5", "test"),
    }
    reasons = [letter.reason for letter in pipeline.dead_letters()]
    assert [reason.partition(",")[0].partition(":")[0] for reason in sorted(reasons)] == [
        "the record is not Avro in a registry's wire format",
        f"the record's bytes are not a value of schema {int.from_bytes(first.value[1:5], 'big')}",
        "the registry has no schema 999999",
    ]

    # People see JSON.
    peeked = [json.loads(line) for line in printed("topic", "peek", topic, "--json")]
    assert (peeked[0]["key"], peeked[0]["value"]["v"]) == ({"id": 1}, "one")
    assert [json.loads(line)["label"] for line in printed("raw", "cat", "containers")] == ["one", "uno", "two"]

    # A letter is decoded again when it is replayed: an intact value is applied, the others stay with a reason.
    where, registry = (
        location(pipeline.resources["store"]),
        registry_location(pipeline.resources["kafka"], pipeline.loaded),
    )
    letters = pipeline.dead_letters()
    dead_letters.replace_value(pipeline.store, "containers", letters[0], first.value)
    [shown] = printed("dlq", "show", "containers", letters[0].id, "--json")
    assert json.loads(json.loads(shown)["text"])["v"] == "one"
    goods = pipeline.table("goods")
    letter_spec = replay.ReplaySpec(goods.upsert_spec(where, "test"), None, True, registry, goods.landing_transforms)
    report = spark().run(replay.run, letter_spec)
    assert report.applied == [letters[0].id]
    assert len(report.failed) == len(pipeline.dead_letters()) == 2
    assert pipeline.by_spark("goods")[1]["label"] == "uno", "the replayed record is older"

    # Without the registry nothing is landed, and nothing is lost.
    stack = Stack(StackHome(Path(os.environ["CDC_LAKE_HOME"])))
    [pid] = [each.pid for each in stack.status() if each.name == "registry"]
    psutil.Process(pid).kill()
    pipeline.execute("insert into goods values (3, 'three', 3, 1)")
    landed = objects(pipeline)
    with pytest.raises(ContractError, match=r"the schema registry at .* did not answer for 30 s"):
        pipeline.land_and_apply()
    assert objects(pipeline) == landed
    stack.up(["registry"])
    resources = pipeline.resources
    postgres = pipeline.loaded.source_postgres(resources["postgres"])
    systems = VerifySystems(postgres, resources["kafka"], resources["connect"], resources["store"], spark())
    waiting = verify_applied(pipeline.table("goods"), systems, seconds=60)
    assert (waiting.clean, waiting.pending) == (True, 1), "a record that is not landed is pending"
    pipeline.land_and_apply()
    assert sorted(pipeline.by_spark("goods")) == [1, 2, 3]
