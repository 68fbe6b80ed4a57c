"""A connector's file as its plugin judges it: what the worker is sent, and which of its errors are the file's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cdc_lake_tests.unit.resources.fake_connect import FakeConnect, fake_connect, validation
from resources.connect.connector_validation import Verdict, judge
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import ConnectRequestFailed

KIND = "org.shop.ShopConnector"
ASKED = "PUT /connector-plugins/ShopConnector/config/validate"
CONFIG = {
    "connector.class": KIND,
    "tasks.max": "1",
    "database.hostname": "{{host}}",
    "database.port": "{{port}}",
    "database.dbname": "shop",
    "table.include.list": "{{schema}}[.]orders",
    "producer.override.linger.ms": "5",
}
DEFINED = ("name", "connector.class", "tasks.max", "database.hostname", "database.port", "database.dbname")
DEFINED += ("table.include.list", "snapshot.mode")
REFUSED = "Error while validating connector config: Connection to 127.0.0.1:1 refused."


@pytest.fixture
def worker() -> Iterator[FakeConnect]:
    with fake_connect() as fake:
        fake.on("GET /connector-plugins", (200, [{"class": KIND, "type": "source", "version": "1"}]))
        fake.on(ASKED, validation(DEFINED))
        yield fake


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.json"


def judged(
    worker: FakeConnect, path: Path, changes: Mapping[str, str] | None = None, known: Mapping[str, str] | None = None
) -> Verdict:
    path.write_text(json.dumps({**CONFIG, **(changes or {})}))
    return judge(KafkaConnect(url=worker.url, rebalance_seconds=0.3), path, known or {})


def sent(worker: FakeConnect) -> dict[str, str]:
    """The configuration that the worker was asked about."""
    return dict(json.loads(worker.bodies[-1]))


def test_the_workers_plugins_are_known(worker: FakeConnect) -> None:
    assert KafkaConnect(url=worker.url).plugins() == {KIND}


def test_what_the_plugin_accepts_is_right(worker: FakeConnect, path: Path) -> None:
    assert judged(worker, path) == Verdict((), ())


def test_values_are_made_up_where_none_are_known(worker: FakeConnect, path: Path) -> None:
    judged(worker, path)
    assert (sent(worker)["database.hostname"], sent(worker)["database.port"]) == ("127.0.0.1", "1")
    judged(worker, path, known={"host": "source.example", "port": "5432"})
    assert (sent(worker)["database.hostname"], sent(worker)["database.port"]) == ("source.example", "5432")
    assert sent(worker)["table.include.list"] == "schema[.]orders"


def test_an_error_is_told_by_setting(worker: FakeConnect, path: Path) -> None:
    worker.on(ASKED, validation(DEFINED, {"snapshot.mode": "Value must be one of always, initial."}))
    found = judged(worker, path, {"snapshot.mode": "sometimes"})
    assert found == Verdict(("snapshot.mode: Value must be one of always, initial",), ())


def test_errors_of_made_up_values_are_not_the_files(worker: FakeConnect, path: Path) -> None:
    worker.on(ASKED, validation(DEFINED, {"database.hostname": REFUSED, "table.include.list": "no expression"}))
    assert judged(worker, path) == Verdict((), ("database.hostname", "table.include.list"))
    # The host is the file's own, and nobody can say more of it while the port is not.
    assert judged(worker, path, {"database.hostname": "source.example"}).faults == ()


def test_errors_of_real_values_are(worker: FakeConnect, path: Path) -> None:
    worker.on(ASKED, validation(DEFINED, {"database.hostname": REFUSED}))
    known = {"host": "127.0.0.1", "port": "1"}
    assert judged(worker, path, known=known).faults == (f"database.hostname: {REFUSED.rstrip('.')}",)
    literal = {"database.hostname": "127.0.0.1", "database.port": "1"}
    assert judged(worker, path, literal).faults == (f"database.hostname: {REFUSED.rstrip('.')}",)


def test_an_error_of_a_setting_that_is_missing_is_the_files(worker: FakeConnect, path: Path) -> None:
    worker.on(ASKED, validation(DEFINED, {"topic.prefix": "A value is required"}))
    assert judged(worker, path).faults == ("topic.prefix: A value is required",)


def test_a_setting_that_the_plugin_does_not_define_is_named(worker: FakeConnect, path: Path) -> None:
    (fault,) = judged(worker, path, {"snapshot.mod": "initial"}).faults
    assert fault == f"snapshot.mod is no setting of {KIND}; is snapshot.mode meant?"
    # Debezium reads settings that it does not define.
    found = judged(worker, path, {"offset.mismatch.strategy": "trust_offset"})
    assert (found.faults, found.undefined) == ((), ("offset.mismatch.strategy",))


def test_a_definition_can_be_of_many_names(worker: FakeConnect, path: Path) -> None:
    worker.on(ASKED, validation((*DEFINED, "column.mask.with.(d+).chars", "snapshot.overrides")))
    assert judged(worker, path, {"column.mask.with.5.chars": "a", "snapshot.overrides.a": "select"}).faults == ()


def test_what_the_plugin_says_twice_is_told_once(worker: FakeConnect, path: Path) -> None:
    code, page = validation(DEFINED, {"tasks.max": "An integer is expected"})
    for config in page["configs"]:  # type: ignore[index]
        config["value"]["errors"] *= 2
    worker.on(ASKED, (code, page))
    assert judged(worker, path).faults == ("tasks.max: An integer is expected",)


def test_a_plugin_that_breaks_is_an_error(worker: FakeConnect, path: Path) -> None:
    worker.on(ASKED, (500, {"error_code": 500, "message": "NullPointerException"}))
    with pytest.raises(ConnectRequestFailed, match=r"config/validate: 500 NullPointerException"):
        judged(worker, path)
