"""`cdc-lake topic` with a fake Kafka: what is printed, and in which format."""

# ruff: noqa: ARG002 - the fake Kafka has the signatures of the real one

import json
from collections.abc import Callable, Iterator

import pytest
import typer
from typer.testing import CliRunner, Result

import cdc_lake.profile
from cdc_lake.cli.data.topic import register
from resources.errors import TopicMissing
from resources.kafka.records import Message, Ranges
from resources.kafka.resource import Kafka
from resources.kafka.topic_settings import TopicInfo

Run = Callable[..., Result]

RECORDS = [
    Message(0, 3, 0, b'{"order_id":1}', b'{"order_id":1,"customer":"Zo\xc3\xab"}', (("h", b"1"),)),
    Message(0, 5, None, None, None),
    Message(0, 7, 1000, b"plain", b"\xff\x00"),
]


class FakeKafka(Kafka):
    """A fake Kafka with one topic of three records."""

    def topics(self) -> tuple[str, ...]:
        return ("t",)

    def topic(self, name: str) -> TopicInfo | None:
        return TopicInfo(name, "id", 1, {"retention.ms": "604800000", "cleanup.policy": "delete"})

    def ranges(self, topic: str, partition: int | None = None) -> dict[int, tuple[int, int]]:
        if topic != "t":
            raise TopicMissing(f"no topic {topic}.", "Look at `cdc-lake topic ls`.")
        return {0: (3, 9)}

    def count_records(self, topic: str, ranges: Ranges | None = None) -> int:
        return len(RECORDS)

    def peek(  # type: ignore[override]  # the records have no transactions
        self, topic: str, partition: int | None = None, offset: int | None = None, limit: int = 10
    ) -> Iterator[Message]:
        self.ranges(topic)
        found = [each for each in RECORDS if partition in {None, each.partition} and each.offset >= (offset or 0)]
        return iter(found[:limit])

    def tail(self, topic: str, limit: int, partition: int | None = None) -> list[Message]:
        return RECORDS[-limit:]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(cdc_lake.profile, "resources", lambda: {"kafka": FakeKafka(bootstrap="nowhere:1")})
    app = typer.Typer()
    register(app)
    return lambda *arguments: CliRunner().invoke(app, ["topic", *arguments])


def test_ls_prints_offsets_or_counts(run: Run) -> None:
    assert run("ls").stdout.splitlines()[-1].split() == ["t", "1", "6", "7", "days,", "0:00:00", "delete"]
    assert run("ls", "--count").stdout.splitlines()[-1].split()[:3] == ["t", "1", "3"]


def test_peek_prints_json_lines(run: Run) -> None:
    lines = [json.loads(line) for line in run("peek", "t", "--json").stdout.splitlines()]
    assert lines[0] == {
        "topic": "t",
        "partition": 0,
        "offset": 3,
        "timestamp": "1970-01-01T00:00:00.000+00:00",
        "key": {"order_id": 1},
        "headers": {"h": 1},
        "value": {"order_id": 1, "customer": "Zoë"},
    }
    assert (lines[1]["key"], lines[1]["value"], lines[1]["timestamp"]) == (None, None, None)
    assert (lines[2]["key"], lines[2]["value"]) == ("plain", {"base64": "/wA="})


def test_peek_prints_readable_text_by_default(run: Run) -> None:
    printed = run("peek", "t", "-n", "1").stdout
    assert "partition 0 offset 3" in printed
    assert '"customer": "Zoë"' in printed
    assert "offset 5" not in printed


def test_peek_tail_prints_the_newest_and_rejects_an_offset(run: Run) -> None:
    assert json.loads(run("peek", "t", "--tail", "-n", "1", "--json").stdout)["offset"] == 7
    assert run("peek", "t", "--tail", "--offset", "3").exit_code == 2


def test_the_error_for_a_missing_topic_is_raised(run: Run) -> None:
    error = run("peek", "nope").exception
    assert isinstance(error, TopicMissing)
    assert error.user_message == "no topic nope. Look at `cdc-lake topic ls`."


def test_peek_can_be_limited_to_a_partition_and_an_offset(run: Run) -> None:
    def offsets(*options: str) -> list[int]:
        return [json.loads(line)["offset"] for line in run("peek", "t", "--json", *options).stdout.splitlines()]

    assert offsets("--partition", "0", "--offset", "5") == [5, 7]
    assert offsets("--partition", "1") == []
    assert offsets("--limit", "1") == [3]
