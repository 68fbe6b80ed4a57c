"""Transforms of polled rows: the topic, the lake, deletes and the comparison with the source.

integration/chain/transforms/test_transforms.py compares the records of a poll with those of a connector.
"""

from __future__ import annotations

import json

from cdc_lake.contract.schema.transforms import hashed
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake_tests.integration.poll.conftest import NewPolled
from cdc_lake_tests.integration.poll.polled_pipeline import settled

TABLES = """\
    - { name: people, key: [id], poll: { timestamp: changed } }
  transforms:
    - { type: MaskField, columns: [phone], length: 3 }
    - { type: ReplaceField, renames: { district: state_province }, exclude: [ssn] }
    - { type: InsertField, static: { environment: "it's {0}" }, topic: message_topic }
"""


def test_polled_rows_are_transformed(new_polled: NewPolled) -> None:
    pipeline = new_polled("hiding", TABLES, {})
    pipeline.execute(
        "create table people (id int primary key, phone varchar(20), district text, ssn text, changed timestamptz "
        "not null default now())"
    )
    pipeline.execute("insert into people values (1, 'secret', 'north', 'secret'), (2, null, null, 'secret')")
    settled(pipeline, "people")
    inserted = {"environment": "it's {0}", "message_topic": pipeline.table("people").topic}
    expected: dict[int, dict[str, object]] = {
        1: {"id": 1, "phone": "***", "state_province": "north", **inserted},
        2: {"id": 2, "phone": "***", "state_province": None, **inserted},
    }
    rows = pipeline.rows("people")
    assert {row: {name: rows[row][name] for name in expected[1]} for row in rows} == expected
    assert {"ssn", "district"}.isdisjoint(pipeline.lake("people").columns)
    messages = [message.value or b"" for message in pipeline.engines.kafka.peek(pipeline.table("people").topic)]
    assert [json.loads(message)["id"] for message in messages] == [1, 2]
    assert not any(b"secret" in message for message in messages)
    assert pipeline.verify("people").clean
    pipeline.execute("delete from people where id = 2")
    report = pipeline.reconcile("people").report
    assert report is not None
    assert report.deletes == 1
    assert pipeline.verify("people").clean
    assert pipeline.verify("people").compared == 1


HASHED = """\
    - { name: users, key: [id], poll: { timestamp: changed } }
    - { name: selected, key: [id], poll: { table: users, timestamp: changed, sql: selected.sql } }
  transforms:
    - { type: hash, columns: [email, Login] }
    - { type: ValueToKey, fields: [id, n] }
    - { type: "ExtractField$Key", field: n }
    - { type: Cast, spec: { n: string } }
    - { type: Cast, at: landing, spec: { m: float64, ok: string } }
    - { type: ReplaceField, at: landing, renames: { district: state_province, m: number } }
    - { type: InsertField, at: landing, static: { environment: test }, topic: message_topic }
"""
SELECTED = 'select id, email, "Login", n, m, ok, district, changed from changing.users'
SALT = "sixteen-letters-0"


def test_hashes_keys_casts_and_transforms_at_landing(new_polled: NewPolled) -> None:
    pipeline = new_polled("changing", HASHED, {"selected.sql": SELECTED})
    pipeline.postgres = SourcePostgres(pipeline.postgres.model_copy(update={"hash_salt": SALT}))
    pipeline.execute(
        'create table users (id int primary key, email text, "Login" varchar(12), n int, m int, ok boolean, '
        "district text, changed timestamptz not null default now())"
    )
    pipeline.execute("insert into users values (1, E'secret-ü\\n', 'secret', 7, 8, true, 'north')")
    pipeline.execute("insert into users values (2, null, '', -1, null, null, null)")
    expected: dict[int, dict[str, object]] = {
        1: {
            "email": hashed("secret-ü\n", SALT, "SHA-256"),
            "login": hashed("secret", SALT, "SHA-256", 12),
            "n": "7",
            "number": 8.0,
            "ok": "true",
            "state_province": "north",
        },
        2: {"email": None, "login": hashed("", SALT, "SHA-256", 12), "n": "-1", "number": None, "ok": None},
    }
    for table in (pipeline.table("users"), pipeline.table("selected")):
        settled(pipeline, table.name)
        rows = pipeline.rows(table.name)
        assert {row: {name: rows[row][name] for name in expected[row]} for row in rows} == expected
        assert {row["message_topic"] for row in rows.values()} == {table.topic}
        messages = list(pipeline.engines.kafka.peek(table.topic))
        assert [message.key for message in messages] == [b'"7"', b'"-1"']
        first = json.loads(messages[0].value or b"")
        assert (first["district"], first["m"], first["ok"], first["n"]) == ("north", 8, True, "7")
        assert {"environment", "state_province", "number"}.isdisjoint(first)
        assert not any(b"secret" in (message.value or b"") for message in messages)
        assert pipeline.verify(table.name).clean
    pipeline.execute("delete from users where id = 1")
    for table in (pipeline.table("users"), pipeline.table("selected")):
        report = pipeline.reconcile(table.name).report
        assert report is not None
        assert report.deletes == 1
        deleted = list(pipeline.engines.kafka.peek(table.topic))[-1]
        assert (deleted.key, json.loads(deleted.value or b"")["m"]) == (b'"7"', 8)
        assert pipeline.verify(table.name).clean
        assert pipeline.verify(table.name).compared == 1
    assert pipeline.reasons() == []
