"""The zip of `cdc-lake aws plugins build`, unpacked as MSK Connect unpacks it, on a worker of its version 3.7.

This test downloads the worker's jars. The zip is built without the config provider, whose jar is in no package
registry.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.integration.resources.source_side import Source, own_schema, source_side
from infra.artifacts.artifacts import CONNECT_3_7, ensure, jars
from infra.local.components import all_components
from infra.local.components.connect import ConnectComponent
from infra.local.progress_display import ConsoleSetup
from infra.local.stack.component import LOOPBACK, StackContext
from infra.local.stack.endpoints import CONNECT_USER
from resources.connect.plugin_archive import build
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT

KIND = "io.debezium.connector.postgresql.PostgresConnector"
ROWS = 5


class Worker(ConnectComponent):
    """Kafka Connect 3.7 with its default plugin discovery, since no manifests are added to the unpacked zip."""

    def __init__(self, plugins: Path) -> None:
        super().__init__(plugins, CONNECT_3_7, discovery="hybrid_warn")

    def probe(self, context: StackContext) -> None:
        """List the connectors, which needs the group and the configuration; 3.7 has no /health."""
        login = (CONNECT_USER, context.secrets.connect_password)
        _get(f"http://{LOOPBACK}:{context.ports['connect']}/connectors", login)


@pytest.fixture(scope="module")
def plugin_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """Run the stack's source side with this worker, and the zip in its plugin.path."""
    with ConsoleSetup(Console()) as progress:
        ensure([CONNECT_3_7], progress)
    folder = tmp_path_factory.mktemp("plugin")
    built = build("debezium", jars("debezium"), [], folder / "out", provider=None)
    with zipfile.ZipFile(built.path) as archive:
        archive.extractall(folder / "plugins" / built.name)
    worker = Worker(folder / "plugins")
    components = [worker if each.name == worker.name else each for each in all_components()]
    with scratch_home() as home, running_stack(home, ["connect"], components) as stack:
        yield source_side(stack)


def test_a_worker_of_msk_connects_version_streams_with_the_zip(plugin_worker: Source) -> None:
    url, login = plugin_worker.at.connect_url, plugin_worker.at.connect_login
    assert _get(url, login)["version"].startswith("3.7.")
    assert KIND in {each["class"] for each in _get(f"{url}/connector-plugins", login)}

    with own_schema(plugin_worker, "zipped") as shop:
        shop.execute(f"create table ev (id int primary key); insert into ev select generate_series(1, {ROWS})")
        shop.postgres.ensure_internal_table(shop.schema, HEARTBEAT)
        shop.postgres.ensure_publication(shop.schema, [(shop.schema, table) for table in shop.tables])
        shop.deploy()
        assert sorted(row["id"] for row in shop.rows()) == list(range(1, ROWS + 1))


def _get(url: str, login: tuple[str, str]) -> Any:  # noqa: ANN401 - JSON
    return httpx.get(url, auth=login, timeout=30, trust_env=False).raise_for_status().json()
