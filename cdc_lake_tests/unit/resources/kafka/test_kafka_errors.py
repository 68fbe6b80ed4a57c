"""Errors of the Kafka resource."""

import socket
import time

import pytest

from resources.errors import Unreachable
from resources.kafka.resource import Kafka


def test_an_unreachable_broker_is_reported_with_the_hint() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{port}.*Run `cdc-lake up`\."):
        Kafka(bootstrap=f"127.0.0.1:{port}", hint="Run `cdc-lake up`.").end_offsets("t")
    assert time.monotonic() - began < 3


def test_settings_are_not_in_the_repr() -> None:
    assert "s3cret" not in repr(Kafka(bootstrap="b:1", settings={"sasl.password": "s3cret"}))
