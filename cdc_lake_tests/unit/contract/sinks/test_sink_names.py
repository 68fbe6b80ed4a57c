"""Object names of sink connectors, as in the vendors' sources and documentation, and rejected names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ForeignObjectError
from cdc_lake.contract.sinks import sink_names
from cdc_lake.contract.sinks.sink_names import Layout, SinkName
from cdc_lake_tests.helpers.sink_objects import ALL_SINKS, object_key

TOPIC = "msk.datalake.cdc_events"


@pytest.mark.parametrize(
    ("layout", "prefix", "key", "expected"),
    [
        # CoreSinkTaskTestCases.scala and S3SinkTaskJsonEnvelopeTest.scala of stream-reactor
        ("lenses", "backups", "backups/myTopic/1/000000000002_0_2.json", ("myTopic", 1, 2, True, False)),
        (
            "lenses",
            "backups",
            "backups/myTopic/000000000001/000000000003_10001_10003.json",
            ("myTopic", 1, 3, True, False),
        ),
        ("lenses", "", "myTopic/1/3_1_3.gz", ("myTopic", 1, 3, True, True)),
        (
            "lenses_by_field",
            "backups",
            "backups/name=first/title=primary/salary=[missing]/myTopic(1_000000000000).json",
            ("myTopic", 1, 0, True, False),
        ),
        (
            "lenses_by_field",
            "b/",
            "b/ALFKI/10248/msk.datalake.cdc_events(0_000000000123).json",
            (TOPIC, 0, 123, True, False),
        ),
        ("lenses_by_field", "b", "b/a/b/c\nd/t(0_1).json", ("t", 0, 1, True, False)),
        # docs.confluent.io, S3 object names
        ("confluent", "topics", "topics/orders/partition=0/orders+0+0000000003.json", ("orders", 0, 3, False, False)),
        ("confluent", "topics", "topics/o/partition=2/o+2+0000000003.json.gz", ("o", 2, 3, False, True)),
        # README.md of the s3-sink-connector
        ("aiven", "a/", "a/mytopic-1-00000000000000000001.gz", ("mytopic", 1, 1, False, True)),
        ("aiven", "a-", "a-my-topic-2-10-7", ("my-topic-2", 10, 7, False, False)),
    ],
)
def test_documented_names_are_parsed(
    layout: Layout, prefix: str, key: str, expected: tuple[str, int, int, bool, bool]
) -> None:
    assert sink_names.parse(layout, prefix, key) == SinkName(key, *expected)


@pytest.mark.parametrize(
    ("layout", "key"),
    [
        ("lenses", "s/t/0/_SUCCESS"),
        ("lenses", "s/t/0/000000000002_0_2.json-5d41402a"),
        ("lenses", "s/t(0_000000000002).json"),
        ("lenses", "elsewhere/t/0/000000000002_0_2.json"),
        ("lenses_by_field", "s/t/0/000000000002_0_2.json"),
        ("confluent", "s/t/partition=0/t+1+0000000003.json"),
        ("confluent", "s/t/partition=0/other+0+0000000003.json"),
        ("confluent", "s/t/partition=0/t+0+0000000003.avro"),
        ("aiven", "s/t-0"),
        ("aiven", "s/t-0-5.json"),
        ("lenses", "s/t/٣/000000000002_0_2.json"),
    ],
)
def test_other_names_are_rejected(layout: Layout, key: str) -> None:
    with pytest.raises(ForeignObjectError, match="does not have the layout") as raised:
        sink_names.parse(layout, "s/", key)
    assert key in raised.value.user_message


@pytest.mark.parametrize(
    ("layout", "key"),
    [
        ("lenses", "s/t/0/00000000000000000090_0_2.json"),
        ("confluent", "s/t/partition=0/t+0+000000000003.json"),
    ],
)
def test_names_with_more_padding_are_rejected(layout: Layout, key: str) -> None:
    with pytest.raises(ForeignObjectError, match=r"padded to more than 1[02] digits"):
        sink_names.parse(layout, "s/", key)


@given(st.sampled_from(ALL_SINKS), st.integers(0, 99), st.integers(0, 10**14), st.integers(0, 10**6))
def test_names_of_every_sink_are_parsed_and_below_the_listed_prefix(
    sink: object, partition: int, first: int, more: int
) -> None:
    config = next(candidate for candidate in ALL_SINKS if candidate is sink)
    key = object_key(config, TOPIC, partition, [(first, b""), (first + more, b"")], "ALFKI/10248")
    found = sink_names.parse(config.layout, config.prefix, key)
    assert (found.topic, found.partition) == (TOPIC, partition)
    assert found.offset == (first + more if found.is_last_offset else first)
    assert key.startswith(sink_names.partition_prefix(config.layout, config.prefix, TOPIC, partition))
    assert key.startswith(sink_names.topic_prefix(config.layout, config.prefix, TOPIC))


@given(st.sampled_from(ALL_SINKS), st.integers(0, 10**12), st.integers(0, 10**6))
def test_listing_from_an_offset_includes_all_later_names(sink: object, offset: int, further: int) -> None:
    config = next(candidate for candidate in ALL_SINKS if candidate is sink)
    key = object_key(config, TOPIC, 0, [(offset + further, b"")], "f")
    assert key > sink_names.key_before(config.layout, config.prefix, TOPIC, 0, offset)
