"""Files and command lines of the components, without starting them."""

# ruff: noqa: ARG001 - fakes have the signatures of the originals

from __future__ import annotations

import base64
import inspect
import json
import os
import re
import stat
import uuid
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from cdc_lake.pipeline.connector_config import CONNECTORS
from infra.artifacts.artifacts import CONNECT_3_7, folder_of
from infra.errors import StackError
from infra.local.components import OPTIONAL, all_components, needed_components
from infra.local.components.aws import AwsComponent
from infra.local.components.connect import ConnectComponent, secrets_file
from infra.local.components.kafka import KafkaComponent
from infra.local.components.registry import RegistryComponent, authorization
from infra.local.components.s3 import DIGEST, S3Component, sweep
from infra.local.components.trino import TrinoComponent
from infra.local.stack.component import Component, Launch, Secrets, StackContext
from infra.local.stack.ports import PREFERRED

SECRETS = Secrets("pg-secret", "debezium-secret", "connect-secret", "s3-key", "s3-secret")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackContext:
    """A state folder with empty jars, and without running tools."""
    for module, jar in (
        ("kafka", "kafka-server-4.3.1.jar"),
        ("s3proxy", "s3proxy-4.1.0-jar-with-dependencies.jar"),
        ("debezium", "debezium-connector-postgres/debezium-connector-postgres-3.7.0.Final.jar"),
        ("avro-converter", "apicurio-avro-converter/avro-1.12.0.jar"),
        ("apicurio", "apicurio-registry-app-2.6.13.Final-runner.jar"),
    ):
        path = folder_of(module) / jar
        path.parent.mkdir(parents=True)
        path.touch()

    def no_tool(launch: Launch, component: str, home: Path) -> str:
        return ""

    for name in ("kafka", "connect"):
        monkeypatch.setattr(f"infra.local.components.{name}.run_tool", no_tool)
    for name in ("kafka", "connect", "s3", "registry"):
        monkeypatch.setattr(f"infra.local.components.{name}.java_home", lambda major: Path(f"/java-{major}"))
    return StackContext(tmp_path / "home", PREFERRED, SECRETS)


def properties(path: Path) -> dict[str, str]:
    """Return a properties file as a mapping."""
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def test_the_registry_is_complete_and_consistent() -> None:
    components = all_components()
    names = [component.name for component in components]
    assert names == ["postgres", "kafka", "registry", "connect", "s3", "trino", "aws"]
    assert all(set(component.needs) <= set(names) for component in components)
    assert {port for component in components for port in component.port_names} == set(PREFERRED)


def test_the_registry_is_needed_for_avro_only() -> None:
    assert needed_components(registry=False) == ["postgres", "kafka", "connect", "s3", "trino", "aws"]
    assert set(needed_components(registry=True)) == {*needed_components(registry=False), "registry"}
    # No other component may start it.
    assert not any(OPTIONAL.intersection(component.needs) for component in all_components())


def test_all_components_listen_on_loopback_only(context: StackContext) -> None:
    for component in (KafkaComponent(), ConnectComponent(), S3Component(), RegistryComponent()):
        component.prepare(context)
    registry = properties(context.home / "registry" / "config" / "application.properties")
    assert (registry["quarkus.http.host"], registry["quarkus.http.port"]) == ("127.0.0.1", "18081")
    kafka = properties(context.home / "kafka" / "server.properties")
    assert kafka["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert properties(context.home / "connect" / "worker.properties")["listeners"] == "http://127.0.0.1:18083"
    assert properties(context.home / "s3" / "s3proxy.properties")["s3proxy.endpoint"] == "http://127.0.0.1:19000"


def test_secrets_are_only_in_private_files(context: StackContext) -> None:
    components: list[Component] = [KafkaComponent(), ConnectComponent(), S3Component(), RegistryComponent()]
    for component in components:
        component.prepare(context)
        launch = component.launch(context)
        assert not any("secret" in text for text in (*launch.argv, *launch.env.values()) if "/" not in text)
    holding = {p for p in context.home.rglob("*") if p.is_file() and "-secret" in p.read_text()}
    assert holding == {
        context.home / "s3" / "s3proxy.properties",
        context.home / "connect" / "logins.properties",
        secrets_file(context.home),
    }
    token = (authorization(context.home) or "").removeprefix("Bearer ")
    with_token = {p for p in context.home.rglob("*") if p.is_file() and token in p.read_text()}
    assert with_token == {
        context.home / "registry" / "credentials.json",
        context.home / "connect" / "secrets" / "registry.properties",
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in holding | with_token)


def test_the_connect_worker_reads_secrets_from_one_folder(context: StackContext) -> None:
    ConnectComponent().prepare(context)
    worker = properties(context.home / "connect" / "worker.properties")
    assert worker["config.providers.file.param.allowed.paths"] == str(secrets_file(context.home).parent)
    assert properties(secrets_file(context.home)) == {"postgres.password": SECRETS.debezium_password}, (
        "not the superuser's"
    )
    assert worker["exactly.once.source.support"] == "enabled"
    assert worker["offset.flush.interval.ms"] == "5000"
    assert worker["plugin.discovery"] == "service_load"
    assert worker["plugin.path"] == f"{folder_of('debezium')},{folder_of('avro-converter')}"


def test_temporary_files_of_engines_are_in_a_private_folder(context: StackContext) -> None:
    for component in (KafkaComponent(), ConnectComponent(), S3Component(), RegistryComponent()):
        left = context.folder(component.name) / "tmp" / "left.so"
        left.parent.mkdir()
        left.touch()
        component.prepare(context)
        assert f"-Djava.io.tmpdir={left.parent}" in component.launch(context).argv
        assert stat.S_IMODE(left.parent.stat().st_mode) == 0o700
        assert not left.exists(), "left by a killed process"


def test_a_registry_database_that_was_not_completed_is_created_again(context: StackContext) -> None:
    registry = RegistryComponent()

    def start(schema: str = "") -> bool:
        """Prepare a start; return whether it finds a database. Create one, with a schema."""
        registry.prepare(context)
        database = context.home / "registry" / "data" / "registry.mv.db"
        found = database.exists()
        database.parent.mkdir(exist_ok=True)
        database.write_text(schema)
        return found

    assert not start()
    assert not start('{"type":"record"}'), "the first start was interrupted"
    assert start(), "it was used, although `cdc-lake up` did not complete it"
    assert not start()
    registry.after_ready(context)
    assert start()
    assert start(), "only the first start creates the database"


def test_the_connect_workers_rest_api_requires_a_password(context: StackContext) -> None:
    component = ConnectComponent()
    component.prepare(context)
    folder = context.home / "connect"
    worker = properties(folder / "worker.properties")
    assert worker["rest.extension.classes"].endswith(".BasicAuthSecurityRestExtension")
    assert f"-Djava.security.auth.login.config={folder / 'jaas.conf'}" in component.launch(context).argv
    assert f'file="{folder / "logins.properties"}";' in (folder / "jaas.conf").read_text()
    assert properties(folder / "logins.properties") == {"cdc-lake": SECRETS.connect_password}


def test_connectors_may_override_the_settings_of_ours_but_no_login(context: StackContext) -> None:
    ConnectComponent().prepare(context)
    worker = properties(context.home / "connect" / "worker.properties")
    assert worker["connector.client.config.override.policy"] == "Allowlist"
    allowed = set(worker["connector.client.config.override.allowlist"].split(","))
    overrides = {
        setting.partition(".override.")[2]
        for file in CONNECTORS.rglob("*.json")
        for setting in json.loads(file.read_text())
        if ".override." in setting
    }
    assert len(overrides) >= 6
    assert overrides <= allowed
    assert not any(word in setting for setting in allowed for word in ("sasl", "ssl", "security", "servers", "class"))


def test_a_connect_worker_may_use_other_jars_and_an_unchanged_plugin_folder(
    context: StackContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_tool(launch: Launch, component: str, home: Path) -> str:
        raise AssertionError(f"nothing must be written to the plugins' folder: {launch}")

    monkeypatch.setattr("infra.local.components.connect.run_tool", no_tool)
    jar = folder_of(CONNECT_3_7) / "connect-runtime-3.7.2.jar"
    jar.parent.mkdir()
    jar.touch()
    worker = ConnectComponent(tmp_path, CONNECT_3_7, "hybrid_warn")
    worker.prepare(context)
    worker_properties = properties(context.home / "connect" / "worker.properties")
    assert (worker_properties["plugin.path"], worker_properties["plugin.discovery"]) == (str(tmp_path), "hybrid_warn")
    assert worker_properties["connector.client.config.override.policy"] == "All"
    assert f"{folder_of(CONNECT_3_7)}/*" in worker.launch(context).argv
    assert worker.version().startswith("3.7.2")


def test_the_aws_api_gets_addresses_and_keys(context: StackContext) -> None:
    launch = AwsComponent().launch(context)
    options = dict(zip(launch.argv[3::2], launch.argv[4::2], strict=True))
    assert options["--trino-url"] == "http://127.0.0.1:18080"
    assert options["--s3-endpoint"] == "http://127.0.0.1:19000"
    keys = {"S3_ACCESS_KEY": "s3-key", "S3_SECRET_KEY": "s3-secret"}
    assert {name: launch.env[name] for name in keys} == keys
    assert launch.env.keys() - keys.keys() == {"TRINO_TOKEN"}


def test_trino_verifies_the_tokens_of_the_aws_api(context: StackContext) -> None:
    component = TrinoComponent()
    component.prepare(context)
    file = context.home / "trino" / "token.key"
    assert file.stat().st_mode & 0o077 == 0
    token = AwsComponent().launch(context).env["TRINO_TOKEN"]
    assert jwt.decode(token, base64.b64decode(file.read_text()), algorithms=["HS256"]) == {"sub": "athena"}
    component.prepare(replace(context, secrets=replace(context.secrets, s3_secret_key="another")))
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(token, base64.b64decode(file.read_text()), algorithms=["HS256"])


def test_the_registry_verifies_one_token(context: StackContext) -> None:
    component = RegistryComponent()
    assert authorization(context.home) is None
    component.prepare(context)
    configuration = context.home / "registry" / "config" / "application.properties"
    for_converters = properties(context.home / "connect" / "secrets" / "registry.properties")
    header = for_converters["registry.authorization"]
    assert header == authorization(context.home)
    key = load_der_public_key(base64.b64decode(properties(configuration)["quarkus.oidc.public-key"]))
    assert isinstance(key, RSAPublicKey)
    claims = jwt.decode(header.removeprefix("Bearer "), key, algorithms=["RS256"])
    assert claims["exp"] > 4_000_000_000, "the token does not expire while a stack exists"
    component.prepare(context)
    assert authorization(context.home) == header, "connectors keep it over restarts"
    (context.home / "registry" / "credentials.json").write_text("{}")
    with pytest.raises(StackError, match=r"credentials\.json: .*Delete it"):
        component.prepare(context)


@pytest.mark.usefixtures("context")
def test_versions_are_read_from_the_jars() -> None:
    assert KafkaComponent().version() == "4.3.1"
    assert S3Component().version() == "4.1.0"
    assert RegistryComponent().version() == "2.6.13.Final"
    assert ConnectComponent().version().endswith("Debezium 3.7.0.Final")


def test_an_interrupted_formatting_of_kafkas_storage_is_repeated(
    context: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[tuple[str, ...]] = []

    def tool(launch: Launch, component: str, home: Path) -> str:
        commands.append(launch.argv)
        if len(commands) == 1:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr("infra.local.components.kafka.run_tool", tool)
    kafka = KafkaComponent()
    with pytest.raises(KeyboardInterrupt):
        kafka.prepare(context)
    kafka.prepare(context)
    kafka.prepare(context)
    assert len(commands) == 2
    assert "kafka.tools.StorageTool" in commands[0]


def test_sweep_deletes_only_unfinished_puts(tmp_path: Path) -> None:
    folder = tmp_path / "bucket" / "raw"
    folder.mkdir(parents=True)
    unfinished = folder / f"object.json-{uuid.uuid4()}"
    finished = folder / f"object.json-{uuid.uuid4()}"
    plain = folder / "object.json"
    for path in (unfinished, finished, plain):
        path.write_text("x")
    os.setxattr(finished, DIGEST, b"1")
    assert sweep(tmp_path) == 1
    assert sorted(folder.iterdir()) == sorted([finished, plain])


@pytest.mark.parametrize("component", all_components(), ids=lambda component: component.name)
def test_each_address_in_a_configuration_is_declared(component: Component) -> None:
    """`up` restarts a component if an address that it declares has changed."""
    source = inspect.getsource(inspect.getmodule(type(component)))  # type: ignore[arg-type]
    read = set(re.findall(r"""context\.ports\[["'](\w+)["']\]""", source))
    declared = {*component.needs, *getattr(component, "uses", ())}
    ports = {name for each in all_components() if each.name in declared for name in each.port_names}
    assert read <= {*component.port_names, *ports}
