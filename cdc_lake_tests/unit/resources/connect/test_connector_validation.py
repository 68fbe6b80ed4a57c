"""Validation of a connector file by its plugin: the request, and which errors are due to the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cdc_lake_tests.unit.resources.fake_connect import FakeConnect, fake_connect, validation
from resources.connect.connector_validation import ValidationResult, validate_file
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import ConnectRequestFailed

KIND = "org.shop.ShopConnector"
VALIDATE = "PUT /connector-plugins/ShopConnector/config/validate"
CONFIG = {
    "connector.class": KIND,
    "tasks.max": "1",
    "database.hostname": "{{host}}",
    "database.port": "{{port}}",
    "database.dbname": "shop",
    "table.include.list": "{{schema}}[.]orders",
    "producer.override.linger.ms": "5",
}
DEFINED: tuple[str, ...] = (
    "name",
    "connector.class",
    "tasks.max",
    "database.hostname",
    "database.port",
    "database.dbname",
)
DEFINED += ("table.include.list", "snapshot.mode")
REFUSED = "Error while validating connector config: Connection to 127.0.0.1:1 refused."


@pytest.fixture
def worker() -> Iterator[FakeConnect]:
    with fake_connect() as fake:
        fake.on("GET /connector-plugins", (200, [{"class": KIND, "type": "source", "version": "1"}]))
        fake.on(VALIDATE, validation(DEFINED))
        yield fake


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.json"


def validate(
    worker: FakeConnect, path: Path, changes: Mapping[str, str] | None = None, known: Mapping[str, str] | None = None
) -> ValidationResult:
    path.write_text(json.dumps({**CONFIG, **(changes or {})}))
    return validate_file(KafkaConnect(url=worker.url, rebalance_seconds=0.3), path, known or {})


def sent(worker: FakeConnect) -> dict[str, str]:
    """Return the configuration that the worker received."""
    return dict(json.loads(worker.bodies[-1]))


def test_the_workers_plugins_are_listed(worker: FakeConnect) -> None:
    assert KafkaConnect(url=worker.url).plugins() == {KIND}


def test_an_accepted_configuration_has_no_faults(worker: FakeConnect, path: Path) -> None:
    assert validate(worker, path) == ValidationResult((), ())


def test_unknown_values_are_replaced_by_placeholders(worker: FakeConnect, path: Path) -> None:
    validate(worker, path)
    assert (sent(worker)["database.hostname"], sent(worker)["database.port"]) == ("127.0.0.1", "1")
    validate(worker, path, known={"host": "source.example", "port": "5432"})
    assert (sent(worker)["database.hostname"], sent(worker)["database.port"]) == ("source.example", "5432")
    assert sent(worker)["table.include.list"] == "schema[.]orders"


def test_errors_are_reported_by_setting(worker: FakeConnect, path: Path) -> None:
    worker.on(VALIDATE, validation(DEFINED, {"snapshot.mode": "Value must be one of always, initial."}))
    found = validate(worker, path, {"snapshot.mode": "sometimes"})
    assert found == ValidationResult(("snapshot.mode: Value must be one of always, initial",), ())


def test_errors_of_placeholder_values_are_not_faults(worker: FakeConnect, path: Path) -> None:
    worker.on(VALIDATE, validation(DEFINED, {"database.hostname": REFUSED, "table.include.list": "no expression"}))
    assert validate(worker, path) == ValidationResult((), ("database.hostname", "table.include.list"))
    # The host is from the file, but it cannot be checked while the port is a placeholder.
    assert validate(worker, path, {"database.hostname": "source.example"}).faults == ()


def test_errors_of_real_values_are_faults(worker: FakeConnect, path: Path) -> None:
    worker.on(VALIDATE, validation(DEFINED, {"database.hostname": REFUSED}))
    known = {"host": "127.0.0.1", "port": "1"}
    assert validate(worker, path, known=known).faults == (f"database.hostname: {REFUSED.rstrip('.')}",)
    literal = {"database.hostname": "127.0.0.1", "database.port": "1"}
    assert validate(worker, path, literal).faults == (f"database.hostname: {REFUSED.rstrip('.')}",)


def test_a_missing_required_setting_is_a_fault(worker: FakeConnect, path: Path) -> None:
    worker.on(VALIDATE, validation(DEFINED, {"topic.prefix": "A value is required"}))
    assert validate(worker, path).faults == ("topic.prefix: A value is required",)


def test_an_undefined_setting_is_named(worker: FakeConnect, path: Path) -> None:
    (fault,) = validate(worker, path, {"snapshot.mod": "initial"}).faults
    assert fault == f"snapshot.mod is not a setting of {KIND}; did you mean snapshot.mode?"
    # Debezium reads settings that it does not define.
    found = validate(worker, path, {"offset.mismatch.strategy": "trust_offset"})
    assert (found.faults, found.undefined) == ((), ("offset.mismatch.strategy",))


def test_a_definition_may_match_several_names(worker: FakeConnect, path: Path) -> None:
    worker.on(VALIDATE, validation((*DEFINED, "column.mask.with.(d+).chars", "snapshot.overrides")))
    assert validate(worker, path, {"column.mask.with.5.chars": "a", "snapshot.overrides.a": "select"}).faults == ()


def test_a_repeated_error_is_reported_once(worker: FakeConnect, path: Path) -> None:
    code, page = validation(DEFINED, {"tasks.max": "An integer is expected"})
    for config in page["configs"]:  # type: ignore[index]
        config["value"]["errors"] *= 2
    worker.on(VALIDATE, (code, page))
    assert validate(worker, path).faults == ("tasks.max: An integer is expected",)


def test_an_error_of_the_plugin_is_raised(worker: FakeConnect, path: Path) -> None:
    worker.on(VALIDATE, (500, {"error_code": 500, "message": "NullPointerException"}))
    with pytest.raises(
        ConnectRequestFailed, match=r"config/validate: Kafka Connect returned 500: NullPointerException"
    ):
        validate(worker, path)
