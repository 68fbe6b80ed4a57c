"""Transforms on a whole stack: what is hidden is in no topic, and the lake equals the transformed source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pytest

from cdc_lake.contract.schema import captured_schema, record_text
from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS
from cdc_lake.jobs.poll import record_sql
from cdc_lake.jobs.verify import VerifyReport
from cdc_lake.pipeline.operations import verification
from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline, Formats
from cdc_lake_tests.integration.chain.conftest import HASH_SALT, NewPipeline
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.state_folder import find_home
from resources.kafka.records import Message

PEOPLE = """
create table people (id int primary key, email text, "Login" varchar(12) not null, phone text, ssn text,
                     district text, unset text {default}, doc text,
                     visits int not null default 3);
"""
TRANSFORMS = """
  transforms:
    - { type: hash, table: people, columns: [email, Login, doc] }
    - { type: MaskField, table: people, columns: [phone], length: 5 }
    - { type: ReplaceField, table: people, renames: { district: state_province, email: email_hash }, exclude: [ssn] }
    - { type: InsertField, static: { environment: "test, ü" }, topic: message_topic }
    - { type: Cast, table: people, spec: { visits: string } }
    - { type: ValueToKey, table: people, fields: [district, visits] }
"""
CLEAR = ("secret-mail", "secret-l", "secret-phone", "secret-ssn", "secret-doc")


def digest(value: str) -> str:
    return hashlib.sha256(f"{HASH_SALT}{value}".encode()).hexdigest()


def insert(pipeline: ChainPipeline, row: int) -> None:
    """Insert a row whose large text is stored out of line."""
    pipeline.execute(
        "insert into people values (%s, %s, %s, %s, %s, %s, null, repeat('secret-doc', 100) || "
        "(select string_agg(md5(g::text), '') from generate_series(1, 300) g))",
        row,
        f"secret-mail-ü{row}",
        f"secret-l{row}",
        None if row == 1 else "secret-phone",
        "secret-ssn",
        f"district {row}",
    )


def verified(pipeline: ChainPipeline, salt: str = HASH_SALT) -> VerifyReport:
    """Compare the people in the lake with the source, whose values are hashed with this salt."""
    found = pipeline.resources
    postgres = found["postgres"].model_copy(update={"hash_salt": salt})
    source = pipeline.loaded.source_postgres(postgres)
    systems = verification.VerifySystems(source, found["kafka"], found["connect"], found["store"], spark())
    people = [pipeline.table("people")]
    ((_, report),) = verification.verify_tables(pipeline.loaded, people, systems, seconds=120)
    return report


def require_equal_polled_records(pipeline: ChainPipeline, streamed: Sequence[Message]) -> None:
    """Require that a poll of these rows builds records with the same keys and values."""
    table = pipeline.table("people")
    columns = captured_schema.latest(pipeline.store, pipeline.loaded.name, table.source_table).columns
    assert table.record_key is not None
    parts = f"{record_sql.key_sql(table.record_key, columns)}, {record_sql.value_sql(columns, {})}"
    rows = pipeline.execute(f"select {parts} from people q where district = 'moved' order by id")
    polled = [(key, json.loads(record_text.with_hashes(value, columns, HASH_SALT))) for key, value in rows]
    assert len(polled) == 2
    values = [json.loads(message.value or b"") for message in streamed]
    own = [{name: value for name, value in each.items() if name not in EVENT_FIELDS} for each in values]
    assert polled == list(zip([(message.key or b"").decode() for message in streamed], own, strict=True))


@pytest.mark.parametrize("formats", drawn((("json", "json"), ("avro", "avro")), in_ci=1), ids="-".join)
def test_hidden_values_are_in_no_topic(new_pipeline: NewPipeline, count_trials: CountTrials, formats: Formats) -> None:
    name = f"hiding_{formats[0]}"
    # A second table has the inserted columns only.
    pipeline = new_pipeline(name, {"people": "", "plain": ""}, formats=formats, more=TRANSFORMS)
    # Apicurio's converter replaces NULL by a column's default.
    pipeline.execute(PEOPLE.format(default="default 'default'" if formats[0] == "json" else ""))
    pipeline.execute("create table plain (id int primary key, email text)")
    pipeline.execute("insert into plain values (1, 'plain')")
    for row in (1, 2, 3):
        insert(pipeline, row)
    shown = pipeline.materialise().metadata[f"{name}/source/people_source"]["transforms"]
    assert "Login hashed (SHA-256)" in shown
    assert HASH_SALT not in shown
    insert(pipeline, 4)
    pipeline.execute("update people set district = 'moved' where id in (1, 2); delete from people where id = 3")
    pipeline.land_and_apply()
    rows = pipeline.by_spark("people")
    inserted = {"environment": "test, ü", "message_topic": f"{name}.{name}.people"}
    for row in (1, 2, 4):
        expected = {
            "email_hash": digest(f"secret-mail-ü{row}"),
            "login": digest(f"secret-l{row}")[:12],
            "phone": "*****",
            "state_province": f"district {row}" if row == 4 else "moved",
            "unset": None,
            "visits": "3",
            **inserted,
        }
        assert {name: rows[row][name] for name in expected} == expected, row
        assert len(rows[row]["doc"]) == 64
    assert {"ssn", "email", "district"}.isdisjoint(dict(pipeline.types("people")))
    assert pipeline.by_spark("plain")[1]["email"] == "plain"
    assert pipeline.by_spark("plain")[1]["message_topic"] == f"{name}.{name}.plain"
    assert pipeline.dead_letters() == []
    report = verified(pipeline)
    assert (report.clean, report.compared) == (True, 3), report
    # Hashes with another salt are differences, in the hashed columns only.
    other = verified(pipeline, "another-salt-0123456789")
    assert other.different == 3
    assert {column for one in other.differences for column in one.columns} == {"email_hash", "Login", "doc"}

    records = list(pipeline.resources["kafka"].peek(pipeline.table("people").topic))
    messages = [record.value or b"" for record in records]
    assert len(messages) == 7
    if formats[0] == "json":
        require_equal_polled_records(pipeline, [record for record in records if b"moved" in (record.value or b"")])
        fields = {
            "id",
            "email_hash",
            "Login",
            "phone",
            "state_province",
            "unset",
            "doc",
            "visits",
            *inserted,
            *EVENT_FIELDS,
        }
        assert all(json.loads(message).keys() == fields for message in messages)
        assert b'{"state_province":"moved","visits":"3"}' in {record.key for record in records}
    assert [text for text in CLEAR if any(text.encode() in message for message in messages)] == []
    # The heartbeats have no inserted column.
    heartbeats = list(pipeline.resources["kafka"].peek(pipeline.loaded.heartbeat_topic))
    assert heartbeats
    assert all(b"environment" not in (heartbeat.value or b"") for heartbeat in heartbeats)
    log = (find_home().path / "logs" / "connect.log").read_text()
    assert f"cdc-lake-{name}" in log
    assert HASH_SALT not in log
    count_trials("records without hidden values", len(messages))
