"""Kafka UI's compose files, read: a version that stays, the loopback only, nothing secret, IAM as everywhere else.

No container is started here.
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
ASKED = re.compile(r"\$\{(\w+)")


def service(name: str) -> dict[str, Any]:
    """The one service of a file."""
    found = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["services"]
    assert list(found) == ["kafka-ui"]
    made: dict[str, Any] = found["kafka-ui"]
    return made


def test_these_are_all() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_the_image_is_the_successors_by_its_version(name: str) -> None:
    assert re.fullmatch(r"kafbat/kafka-ui:v\d+\.\d+\.\d+", service(name)["image"])
    assert service(name)["image"] == service(FILES[0])["image"]


@pytest.mark.parametrize("name", FILES)
def test_only_this_machine_reaches_it(name: str) -> None:
    found = service(name)
    assert found["network_mode"] == "host", "ports would be published by Docker, and SERVER_ADDRESS the container's"
    assert found["environment"]["SERVER_ADDRESS"] == "127.0.0.1"
    assert "ports" not in found


@pytest.mark.parametrize("name", FILES)
def test_it_only_looks(name: str) -> None:
    environment = service(name)["environment"]
    assert environment[f"{CLUSTER}READONLY"] == "true"
    assert "DYNAMIC_CONFIG_ENABLED" not in environment


@pytest.mark.parametrize("name", FILES)
def test_it_wants_a_login(name: str) -> None:
    environment = service(name)["environment"]
    assert environment["AUTH_TYPE"] == "LOGIN_FORM"
    assert environment["SPRING_SECURITY_USER_NAME"]
    assert environment["SPRING_SECURITY_USER_PASSWORD"].startswith("${KAFKA_UI_PASSWORD:?")


@pytest.mark.parametrize("name", FILES)
def test_nothing_in_it_is_secret(name: str) -> None:
    environment = service(name)["environment"]
    hidden = {key: value for key, value in environment.items() if re.search("PASSWORD|SECRET|ACCESS_KEY|TOKEN", key)}
    given = {value for value in hidden.values() if value is not None and not ASKED.match(value)}
    assert given == set(), "a key without a value is the shell's"
    assert not re.search(r"AKIA|ASIA|password=", (FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def test_locally_the_addresses_are_those_that_the_command_line_prints() -> None:
    made = Endpoints.model_validate({**dict.fromkeys(Endpoints.model_fields, "x"), "postgres_port": 1})
    printed = shell_variables(made, with_secrets=True)
    environment = service("local")["environment"]
    assert ASKED.findall(environment[f"{CLUSTER}BOOTSTRAPSERVERS"]) == ["KAFKA_BOOTSTRAP"]
    assert ASKED.findall(environment[f"{CLUSTER}KAFKACONNECT_0_ADDRESS"]) == ["CONNECT_URL"]
    assert ASKED.findall(environment[f"{CLUSTER}KAFKACONNECT_0_PASSWORD"]) == ["CONNECT_PASSWORD"]
    assert {"KAFKA_BOOTSTRAP", "CONNECT_URL", "CONNECT_USER", "CONNECT_PASSWORD"} <= printed.keys()
    assert not [key for key in environment if "SASL" in key]


def test_msk_is_signed_in_to_as_by_our_own_java_clients() -> None:
    environment = service("msk")["environment"]
    prefix = f"{CLUSTER}PROPERTIES_"
    said = {key.removeprefix(prefix): value for key, value in environment.items() if key.startswith(prefix)}
    assert said == {name.replace(".", "_").upper(): value for name, value in JAVA_CLIENT.items()}
    assert ASKED.findall(environment[f"{CLUSTER}BOOTSTRAPSERVERS"]) == ["MSK_BOOTSTRAP"]
