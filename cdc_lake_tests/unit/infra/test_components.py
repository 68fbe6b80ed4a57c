"""What the components write and ask for, without starting them."""

# ruff: noqa: ARG001, ARG002 - stand-ins take the arguments of what they stand in for

from __future__ import annotations

import base64
import json
import os
import stat
import uuid
from dataclasses import replace
from pathlib import Path

import jwt
import pytest

from cdc_lake.pipeline.assets.topic import CONNECTORS
from infra.local.artifacts.artifacts import CONNECT_3_7, folder_of
from infra.local.artifacts.stack_classes import Recorded
from infra.local.components import all_components
from infra.local.components.aws import AwsComponent
from infra.local.components.connect import ConnectComponent, secrets_file
from infra.local.components.kafka import KafkaComponent
from infra.local.components.s3 import DIGEST, S3Component, sweep
from infra.local.components.trino import TrinoComponent
from infra.local.errors import StackError
from infra.local.stack.component import Component, Launch, Secrets, StackContext
from infra.local.stack.ports import PREFERRED

SECRETS = Secrets("pg-secret", "debezium-secret", "connect-secret", "s3-key", "s3-secret")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackContext:
    """A state folder, jars that are only names, and no tool that is really run."""
    for module, jar in (
        ("kafka", "kafka-server-4.3.1.jar"),
        ("s3proxy", "s3proxy-4.1.0-jar-with-dependencies.jar"),
        ("debezium", "debezium-connector-postgres/debezium-connector-postgres-3.7.0.Final.jar"),
    ):
        path = folder_of(module) / jar
        path.parent.mkdir(parents=True)
        path.touch()

    def no_tool(launch: Launch, component: str, home: Path) -> str:
        return ""

    for name in ("kafka", "connect"):
        monkeypatch.setattr(f"infra.local.components.{name}.run_tool", no_tool)
    for name in ("kafka", "connect", "s3"):
        monkeypatch.setattr(f"infra.local.components.{name}.java_home", lambda major: Path(f"/java-{major}"))
    return StackContext(tmp_path / "home", PREFERRED, SECRETS)


def properties(path: Path) -> dict[str, str]:
    """A properties file as a mapping."""
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def test_the_registry_is_whole_and_consistent() -> None:
    components = all_components()
    names = [component.name for component in components]
    assert names == ["postgres", "kafka", "connect", "s3", "trino", "aws"]
    assert all(set(component.needs) <= set(names) for component in components)
    assert {port for component in components for port in component.port_names} == set(PREFERRED)


def test_an_engine_that_is_recorded_is_told_so_and_needs_other_engines_only(context: StackContext) -> None:
    engine = ConnectComponent()
    draft = context.home / "connect.tmp"
    archive = engine.class_path().archive()
    archive.parent.mkdir(parents=True)
    recorded = Recorded(engine, draft, {"kafka", "connect"})
    engine.prepare(context)
    plain = engine.launch(context).argv
    told = (plain[0], f"-XX:ArchiveClassesAtExit={draft}", *plain[1:])
    assert recorded.launch(context).argv == told
    archive.touch()
    assert engine.launch(context).argv != plain
    assert recorded.launch(context).argv == told, "it would use one archive while it writes another"
    assert engine.needs == ("kafka", "postgres")
    assert recorded.needs == ("kafka",)


class Broken(S3Component):
    """An engine that comes up and answers nothing."""

    def after_ready(self, context: StackContext) -> None:
        """See Component."""

    def exercise(self, context: StackContext) -> None:
        """See OnJava."""
        raise KeyError("Body")


def test_an_engine_that_answers_wrongly_is_no_more_than_a_warning_of_setup(context: StackContext) -> None:
    with pytest.raises(StackError, match="s3 was asked for something and answered KeyError"):
        Recorded(Broken(), context.home / "s3.tmp", {"s3"}).after_ready(context)


def test_everything_listens_on_loopback_only(context: StackContext) -> None:
    for component in (KafkaComponent(), ConnectComponent(), S3Component()):
        component.prepare(context)
    kafka = properties(context.home / "kafka" / "server.properties")
    assert kafka["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert properties(context.home / "connect" / "worker.properties")["listeners"] == "http://127.0.0.1:18083"
    assert properties(context.home / "s3" / "s3proxy.properties")["s3proxy.endpoint"] == "http://127.0.0.1:19000"


def test_secrets_are_in_private_files_only(context: StackContext) -> None:
    components: list[Component] = [KafkaComponent(), ConnectComponent(), S3Component()]
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
    assert all(path.stat().st_mode & 0o077 == 0 for path in holding)


def test_the_worker_reads_secrets_from_one_folder(context: StackContext) -> None:
    ConnectComponent().prepare(context)
    worker = properties(context.home / "connect" / "worker.properties")
    assert worker["config.providers.file.param.allowed.paths"] == str(secrets_file(context.home).parent)
    assert properties(secrets_file(context.home)) == {"postgres.password": SECRETS.debezium_password}, (
        "not the superuser's"
    )
    assert worker["exactly.once.source.support"] == "enabled"
    assert worker["offset.flush.interval.ms"] == "5000"
    assert worker["plugin.discovery"] == "service_load"


def test_temporary_files_of_engines_are_not_where_every_user_looks(context: StackContext) -> None:
    for component in (KafkaComponent(), ConnectComponent(), S3Component()):
        left = context.folder(component.name) / "tmp" / "left.so"
        left.parent.mkdir()
        left.touch()
        component.prepare(context)
        assert f"-Djava.io.tmpdir={left.parent}" in component.launch(context).argv
        assert stat.S_IMODE(left.parent.stat().st_mode) == 0o700
        assert not left.exists(), "a process that was killed left it"


def test_the_workers_rest_interface_asks_for_a_password(context: StackContext) -> None:
    component = ConnectComponent()
    component.prepare(context)
    folder = context.home / "connect"
    worker = properties(folder / "worker.properties")
    assert worker["rest.extension.classes"].endswith(".BasicAuthSecurityRestExtension")
    assert f"-Djava.security.auth.login.config={folder / 'jaas.conf'}" in component.launch(context).argv
    assert f'file="{folder / "logins.properties"}";' in (folder / "jaas.conf").read_text()
    assert properties(folder / "logins.properties") == {"cdc-lake": SECRETS.connect_password}


def test_connectors_override_what_ours_set_and_no_login(context: StackContext) -> None:
    ConnectComponent().prepare(context)
    worker = properties(context.home / "connect" / "worker.properties")
    assert worker["connector.client.config.override.policy"] == "Allowlist"
    allowed = set(worker["connector.client.config.override.allowlist"].split(","))
    ours = {
        setting.partition(".override.")[2]
        for file in CONNECTORS.rglob("*.json")
        for setting in json.loads(file.read_text())
        if ".override." in setting
    }
    assert len(ours) >= 6
    assert ours <= allowed
    assert not any(word in setting for setting in allowed for word in ("sasl", "ssl", "security", "servers", "class"))


def test_a_worker_can_have_other_jars_and_leave_its_plugins_as_they_are(
    context: StackContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_tool(launch: Launch, component: str, home: Path) -> str:
        raise AssertionError(f"nothing is to be written beside the plugins: {launch}")

    monkeypatch.setattr("infra.local.components.connect.run_tool", no_tool)
    jar = folder_of(CONNECT_3_7) / "connect-runtime-3.7.2.jar"
    jar.parent.mkdir()
    jar.touch()
    worker = ConnectComponent(tmp_path, CONNECT_3_7, "hybrid_warn")
    worker.prepare(context)
    written = properties(context.home / "connect" / "worker.properties")
    assert (written["plugin.path"], written["plugin.discovery"]) == (str(tmp_path), "hybrid_warn")
    assert written["connector.client.config.override.policy"] == "All"
    assert f"{folder_of(CONNECT_3_7)}/*" in worker.launch(context).argv
    assert worker.version().startswith("3.7.2")


def test_the_aws_api_gets_the_addresses_and_keys_that_it_needs(context: StackContext) -> None:
    launch = AwsComponent().launch(context)
    options = dict(zip(launch.argv[3::2], launch.argv[4::2], strict=True))
    assert options["--trino-url"] == "http://127.0.0.1:18080"
    assert options["--s3-endpoint"] == "http://127.0.0.1:19000"
    keys = {"S3_ACCESS_KEY": "s3-key", "S3_SECRET_KEY": "s3-secret"}
    assert {name: launch.env[name] for name in keys} == keys
    assert launch.env.keys() - keys.keys() == {"TRINO_TOKEN"}


def test_trino_is_given_the_key_of_the_tokens_that_the_aws_api_sends(context: StackContext) -> None:
    component = TrinoComponent()
    component.prepare(context)
    file = context.home / "trino" / "token.key"
    assert file.stat().st_mode & 0o077 == 0
    sent = AwsComponent().launch(context).env["TRINO_TOKEN"]
    assert jwt.decode(sent, base64.b64decode(file.read_text()), algorithms=["HS256"]) == {"sub": "athena"}
    component.prepare(replace(context, secrets=replace(context.secrets, s3_secret_key="another")))
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(sent, base64.b64decode(file.read_text()), algorithms=["HS256"])


@pytest.mark.usefixtures("context")
def test_versions_come_from_the_jars() -> None:
    assert KafkaComponent().version() == "4.3.1"
    assert S3Component().version() == "4.1.0"
    assert ConnectComponent().version().endswith("Debezium 3.7.0.Final")


def test_kafkas_storage_is_formatted_until_that_came_to_its_end(
    context: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []

    def tool(launch: Launch, component: str, home: Path) -> str:
        ran.append(launch.argv)
        if len(ran) == 1:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr("infra.local.components.kafka.run_tool", tool)
    kafka = KafkaComponent()
    with pytest.raises(KeyboardInterrupt):
        kafka.prepare(context)
    kafka.prepare(context)
    kafka.prepare(context)
    assert len(ran) == 2
    assert "kafka.tools.StorageTool" in ran[0]


def test_the_sweep_takes_unfinished_puts_only(tmp_path: Path) -> None:
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
