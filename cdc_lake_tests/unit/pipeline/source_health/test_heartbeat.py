"""Parsing of the heartbeat topic's records; other records are skipped with a warning."""

from __future__ import annotations

import json
import logging

import pytest

from cdc_lake.pipeline.source_health.heartbeat import Heartbeat, heartbeat
from resources.kafka.records import Message

ROW = {"beats": 7, "__lsn": 995, "__source_ts_ms": 1_700_000_000_000, "__snapshot": "false"}


def message(value: bytes | None) -> Message:
    """Return a record with this value."""
    return Message(partition=0, offset=12, timestamp_ms=None, key=None, value=value)


@pytest.mark.parametrize(("snapshot", "expected"), [(None, False), ("false", False), ("first", True), ("last", True)])
def test_a_heartbeat_is_parsed(snapshot: str | None, expected: bool) -> None:
    found = heartbeat("beats", message(json.dumps({**ROW, "__snapshot": snapshot}).encode()))
    assert found == Heartbeat(7, 995, 1_700_000_000_000, expected)


@pytest.mark.parametrize(
    "value",
    [b"", b"poison", b"[]", b"null", b"{}", b'"text"', b"\xff", json.dumps({**ROW, "beats": None}).encode()],
)
def test_another_record_is_skipped_with_a_warning(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert heartbeat("beats", message(value)) is None
    assert "topic beats, partition 0, offset 12: skipped a record that is not a heartbeat" in caplog.text


def test_a_tombstone_is_not_a_heartbeat() -> None:
    assert heartbeat("beats", message(None)) is None
