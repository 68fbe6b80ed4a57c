"""Transforms of polled rows: the topic, the lake, deletes and the comparison with the source."""

from __future__ import annotations

import json

from cdc_lake_tests.integration.poll.conftest import NewPolled
from cdc_lake_tests.integration.poll.test_polls import settled

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
