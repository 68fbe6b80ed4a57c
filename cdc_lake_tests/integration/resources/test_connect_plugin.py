"""The zip that `cdc-lake aws plugins build` makes, unpacked as MSK Connect unpacks it: a worker loads and runs it.

The worker is the stack's. The config provider's jar is in no package registry, so the zip is without it.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import httpx

from cdc_lake_tests.integration.resources.source_side import own_schema, source_side
from cdc_lake_tests.stack import running_stack, scratch_home
from infra.local.artifacts import jars
from infra.local.components import all_components
from infra.local.components.connect import ConnectComponent
from resources.connect_plugin import build

KIND = "io.debezium.connector.postgresql.PostgresConnector"
ROWS = 5


def test_a_worker_loads_the_zip_and_streams_with_it(tmp_path: Path) -> None:
    built = build("debezium", jars("debezium"), [], tmp_path / "out", provider=None)
    plugins = tmp_path / "plugins"
    with zipfile.ZipFile(built.path) as archive:
        archive.extractall(plugins / built.name)
    components = [ConnectComponent(plugins) if each.name == "connect" else each for each in all_components()]

    with scratch_home() as home, running_stack(home, ["connect"], components) as stack:
        engines = source_side(stack)
        offered = httpx.get(f"{engines.at.connect_url}/connector-plugins", timeout=30, trust_env=False).json()
        assert KIND in {each["class"] for each in offered}

        with own_schema(engines, "zipped") as shop:
            shop.execute(f"create table ev (id int primary key); insert into ev select generate_series(1, {ROWS})")
            shop.postgres.ensure_heartbeat(shop.schema)
            shop.postgres.ensure_publication(shop.schema, [(shop.schema, table) for table in shop.tables])
            shop.deploy()
            assert sorted(row["id"] for row in shop.rows()) == list(range(1, ROWS + 1))
