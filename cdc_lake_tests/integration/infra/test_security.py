"""No secret where it does not belong, no listener that another machine reaches, no file that another user reads."""

from __future__ import annotations

import ipaddress
import json
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from cdc_lake_tests.integration.infra.secured import Secured, secured_stack
from infra.local.secrets import load_or_make

HOLDERS = {"secrets.json", "connect/secrets/postgres.properties", "s3/s3proxy.properties"}
"""The files that hold a secret: the stack's own, and those that an engine reads it from."""


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with secured_stack() as found:
        yield found


def test_no_command_line_shows_a_secret(secured: Secured) -> None:
    assert secured.watch.telling == set()
    # The watch has seen what it was for: every engine, Spark's JVM and Dagster's run.
    seen = "\n".join(secured.watch.seen)
    for main in ("kafka.Kafka", "ConnectDistributed", "s3proxy.Main", "TrinoServer", "aws_endpoint", "SparkSubmit"):
        assert main in seen, main
    assert re.search(r"postgres.* -D ", seen)
    assert "asset materialize" in seen


def test_no_file_holds_a_secret_but_those_that_must(secured: Secured) -> None:
    """Logs, Dagster's event log, Kafka's data (connector configurations among them), the lake, the pages."""
    assert secured.files_with_a_secret() == HOLDERS
    home = secured.stack.home.path
    for log in ("postgres", "kafka", "connect", "s3", "aws", "trino"):
        assert (home / "logs" / f"{log}.log").exists()
    assert list((home / "dagster" / "storage").glob("**/*")), "Dagster wrote its event log elsewhere"


def test_no_command_prints_a_secret(secured: Secured) -> None:
    for command in (
        ("status", "--json"),
        ("status",),
        ("doctor",),
        ("topic", "ls"),
        ("topic", "peek", "cdc-lake-connect-configs", "-n", "100"),
        ("logs", "connect", "-n", "10000"),
        ("query", "SHOW CREATE TABLE cdc_events"),
        ("raw", "cat", "northwind", "--limit", "5"),
    ):
        secured.run("cdc-lake", *command)
    assert not secured.planted.within("\n".join(secured.said))


def test_connect_tells_references_only(secured: Secured) -> None:
    url = secured.at.connect_url
    name = "cdc-lake-northwind"
    paths = (
        "/connectors?expand=info&expand=status",
        f"/connectors/{name}",
        f"/connectors/{name}/config",
        f"/connectors/{name}/tasks",
        f"/connectors/{name}/status",
        f"/connectors/{name}/offsets",
        "/admin/loggers",
    )
    told = {path: httpx.get(f"{url}{path}", trust_env=False).raise_for_status().text for path in paths}
    assert not any(secured.planted.within(text) for text in told.values())
    config = json.loads(told[f"/connectors/{name}/config"])
    assert re.fullmatch(r"\$\{file:/.+/postgres\.properties:postgres\.password\}", config["database.password"])
    # Nor does it tell what it finds there when it is asked whether a configuration is right.
    plugin = f"{url}/connector-plugins/{config['connector.class']}/config/validate"
    said = httpx.put(plugin, json=config, trust_env=False, timeout=60).raise_for_status().text
    assert not secured.planted.within(said)


def test_secrets_are_read_from_one_folder_only(secured: Secured) -> None:
    url, name = secured.at.connect_url, "cdc-lake-northwind"
    config = httpx.get(f"{url}/connectors/{name}/config", trust_env=False).json()
    stolen = {**config, "topic.prefix": f"${{file:{secured.stack.home.secrets_file}:s3_secret_key}}"}
    plugin = f"{url}/connector-plugins/{config['connector.class']}/config/validate"
    said = httpx.put(plugin, json=stolen, trust_env=False, timeout=60).text
    assert not secured.planted.within(said)


def test_everything_listens_on_loopback_only(secured: Secured) -> None:
    listening: dict[str, set[str]] = {}
    for name, processes in secured.processes().items():
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # a worker of PostgreSQL's that had little to do
                for each in process.net_connections(kind="inet"):
                    if each.status == "LISTEN" or (not each.raddr and each.laddr):
                        listening.setdefault(name, set()).add(each.laddr.ip)
    assert listening.keys() == {"postgres", "kafka", "connect", "s3", "aws", "trino"}
    outside = {name: found for name, ips in listening.items() if (found := [ip for ip in ips if not _loopback(ip)])}
    assert outside == {}


def _loopback(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def test_files_are_for_their_owner_only(secured: Secured) -> None:
    home = secured.stack.home.path
    for holder in HOLDERS:
        assert stat.S_IMODE((home / holder).stat().st_mode) == 0o600, holder
    for folder in (path for path in home.iterdir() if path.is_dir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder.name
    assert stat.S_IMODE(home.stat().st_mode) in {0o700, 0o711}


def test_an_unsigned_or_wrongly_signed_request_gets_nothing(secured: Secured) -> None:
    bucket = f"{secured.at.s3_endpoint}/{secured.at.bucket}"
    assert httpx.get(bucket, trust_env=False).status_code == 403
    wrong = {"Authorization": "AWS cdcplanted:AAAAAAAAAAAAAAAAAAAAAAAAAAA="}
    assert httpx.get(bucket, headers=wrong, trust_env=False).status_code == 403


def test_each_state_folder_has_secrets_of_its_own(tmp_path: Path) -> None:
    first, second = (load_or_make(tmp_path / name) for name in ("a.json", "b.json"))
    for name in ("postgres_password", "s3_access_key", "s3_secret_key"):
        assert getattr(first, name) != getattr(second, name)
        assert len(getattr(first, name)) >= 19
    assert load_or_make(tmp_path / "a.json") == first
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600
