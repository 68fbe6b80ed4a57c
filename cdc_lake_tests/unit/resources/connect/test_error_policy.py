"""Error policy of connectors: shipped files have one, and settings that would skip records are rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resources.connect.config_template import placeholders, render
from resources.connect.error_policy import require_policy
from resources.errors import ConnectorConfigInvalid

CONNECTORS = Path(__file__).parents[4] / "connectors"
SHIPPED = sorted(path for path in CONNECTORS.rglob("*.json"))
DEBEZIUM: dict[str, str] = json.loads((CONNECTORS / "debezium-postgres.json").read_text())
SINK = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "errors.tolerance": "all"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_connector_has_an_error_policy(path: Path) -> None:
    settings = render(path, dict.fromkeys(placeholders(path), "1"))
    require_policy(str(path), settings)
    assert settings.get("errors.tolerance") not in {"none", "all"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("errors.tolerance", "all"),
        ("event.processing.failure.handling.mode", "skip"),
        ("event.processing.failure.handling.mode", "WARN"),
        ("event.converting.failure.handling.mode", "warn"),
        ("errors.max.retries", "-1"),
        ("errors.retry.timeout", "-1"),
    ],
)
def test_settings_that_skip_records_are_rejected(tmp_path: Path, name: str, value: str) -> None:
    own = tmp_path / "own.json"
    own.write_text(json.dumps({**DEBEZIUM, name: value}))
    with pytest.raises(ConnectorConfigInvalid, match=f"own.json: it violates the error policy: {name}={value}"):
        render(own, dict.fromkeys(placeholders(own), "1"))


@pytest.mark.parametrize(
    "name", ["errors.retry.timeout", "errors.max.retries", "event.converting.failure.handling.mode"]
)
def test_a_missing_setting_is_rejected(name: str) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=f"{name} is missing"):
        require_policy("own.json", {key: value for key, value in DEBEZIUM.items() if key != name})


def test_only_a_sink_may_use_a_dead_letter_queue() -> None:
    queue = {"errors.deadletterqueue.topic.name": "dlq"}
    require_policy("sink.json", {**SINK, **queue})
    with pytest.raises(ConnectorConfigInvalid, match=r"loses records unless errors\.deadletterqueue"):
        require_policy("sink.json", SINK)
    with pytest.raises(ConnectorConfigInvalid, match=r"a source connector has no errors\.deadletterqueue"):
        require_policy("source.json", {**DEBEZIUM, **queue, "errors.tolerance": "all"})
