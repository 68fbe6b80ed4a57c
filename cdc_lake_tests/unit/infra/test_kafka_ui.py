"""Kafka UI's compose files: a fixed version, loopback only, no secrets, and IAM as for our Java clients.

No container is started.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import infra
from infra.local.shell_variables import shell_variables
from infra.local.stack.endpoints import Endpoints
from resources.kafka.msk_iam import JAVA_CLIENT

FOLDER = Path(str(infra.__file__)).parent / "kafka_ui"
FILES = ("local", "msk")
CLUSTER = "KAFKA_CLUSTERS_0_"
VARIABLE = re.compile(r"\$\{(\w+)")


def service(name: str) -> dict[str, Any]:
    """Return the only service of a file."""
    found = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["services"]
    assert list(found) == ["kafka-ui"]
    kafka_ui: dict[str, Any] = found["kafka-ui"]
    return kafka_ui


def test_all_compose_files_are_tested() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_the_image_is_kafbat_with_a_fixed_version(name: str) -> None:
    assert re.fullmatch(r"kafbat/kafka-ui:v\d+\.\d+\.\d+", service(name)["image"])
    assert service(name)["image"] == service(FILES[0])["image"]


@pytest.mark.parametrize("name", FILES)
def test_the_ui_listens_on_loopback_only(name: str) -> None:
    found = service(name)
    assert found["network_mode"] == "host", (
        "with another network, Docker publishes ports and SERVER_ADDRESS is the container's"
    )
    assert found["environment"]["SERVER_ADDRESS"] == "127.0.0.1"
    assert "ports" not in found


@pytest.mark.parametrize("name", FILES)
def test_the_ui_is_read_only(name: str) -> None:
    environment = service(name)["environment"]
    assert environment[f"{CLUSTER}READONLY"] == "true"
    assert "DYNAMIC_CONFIG_ENABLED" not in environment


@pytest.mark.parametrize("name", FILES)
def test_the_ui_requires_a_login(name: str) -> None:
    environment = service(name)["environment"]
    assert environment["AUTH_TYPE"] == "LOGIN_FORM"
    assert environment["SPRING_SECURITY_USER_NAME"]
    assert environment["SPRING_SECURITY_USER_PASSWORD"].startswith("${KAFKA_UI_PASSWORD:?")


@pytest.mark.parametrize("name", FILES)
def test_compose_files_contain_no_secrets(name: str) -> None:
    environment = service(name)["environment"]
    secrets = {key: value for key, value in environment.items() if re.search("PASSWORD|SECRET|ACCESS_KEY|TOKEN", key)}
    literals = {value for value in secrets.values() if value is not None and not VARIABLE.match(value)}
    assert literals == set(), "a variable without a value is passed from the shell"
    assert not re.search(r"AKIA|ASIA|password=", (FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def test_the_local_file_uses_variables_of_cdc_lake_env() -> None:
    endpoints = Endpoints.model_validate({**dict.fromkeys(Endpoints.model_fields, "x"), "postgres_port": 1})
    printed = shell_variables(endpoints, with_secrets=True)
    environment = service("local")["environment"]
    assert VARIABLE.findall(environment[f"{CLUSTER}BOOTSTRAPSERVERS"]) == ["KAFKA_BOOTSTRAP"]
    assert VARIABLE.findall(environment[f"{CLUSTER}KAFKACONNECT_0_ADDRESS"]) == ["CONNECT_URL"]
    assert VARIABLE.findall(environment[f"{CLUSTER}KAFKACONNECT_0_PASSWORD"]) == ["CONNECT_PASSWORD"]
    assert {"KAFKA_BOOTSTRAP", "CONNECT_URL", "CONNECT_USER", "CONNECT_PASSWORD"} <= printed.keys()
    assert not [key for key in environment if "SASL" in key]


def test_the_msk_file_authenticates_like_our_java_clients() -> None:
    environment = service("msk")["environment"]
    prefix = f"{CLUSTER}PROPERTIES_"
    properties = {key.removeprefix(prefix): value for key, value in environment.items() if key.startswith(prefix)}
    assert properties == {name.replace(".", "_").upper(): value for name, value in JAVA_CLIENT.items()}
    assert VARIABLE.findall(environment[f"{CLUSTER}BOOTSTRAPSERVERS"]) == ["MSK_BOOTSTRAP"]
