"""The address leads to another database cluster, or to one that was put back: told before anything is read from it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.local_stack import running_stack, scratch_home
from cdc_lake_tests.trial_counts import Tried
from infra.local.stack.attach import load_endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome
from resources.postgres.resource import Postgres


@dataclass(frozen=True)
class OtherServer:
    """A second PostgreSQL with the same password, as one that took the first one's place would have."""

    stack: Stack

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.stack.home.path / "postgres" / "data"

    @property
    def resource(self) -> Postgres:
        """The way in."""
        at = load_endpoints(self.stack.home.path)
        password = at.postgres_password.get_secret_value()
        return Postgres(
            host=at.postgres_host,
            port=at.postgres_port,
            user=at.postgres_user,
            password=password,
            database=at.postgres_database,
            capture_role=at.capture_role,
        )

    def restore(self, backup: Path) -> None:
        """Put a copy of the data in the data's place, as a restore of a backup does: the server makes a timeline."""
        self.stack.down()
        shutil.rmtree(self.data)
        shutil.copytree(backup, self.data)
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("restore_command = 'false'\nhot_standby = off\n")  # nobody gets in before it can write
        (self.data / "recovery.signal").touch()
        self.own()
        self.stack.up(["postgres"])

    def backup(self, to: Path) -> None:
        """Copy the data of the server while it is down."""
        self.stack.down()
        shutil.copytree(self.data, to)
        self.stack.up(["postgres"])

    def own(self) -> None:
        """Give the data to whom its folder belongs."""
        folder = self.data.parent.stat()
        for path in (self.data, *self.data.rglob("*")):
            shutil.chown(path, folder.st_uid, folder.st_gid)


@pytest.fixture(scope="module")
def other(bench: Bench) -> Iterator[OtherServer]:
    """The second server, running and empty."""
    with scratch_home() as home:
        there = StackHome(home)
        there.make()
        shutil.copy(bench.cli.stack.home.secrets_file, there.secrets_file)
        with running_stack(home, ["postgres"]) as stack:
            yield OtherServer(stack)


@pytest.fixture(scope="module")
def moving(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stall]:
    """A pipeline whose server is another one later on."""
    assert bench.cli
    made = Stall("moving", tmp_path_factory.mktemp("defs"))
    made.materialise()
    yield made
    made.resources["connect"].delete(made.flow.connector)
    made.server = None
    made.flow.at_source(made.resources["postgres"]).drop_slot(made.flow.slot)


def test_another_cluster(moving: Stall, other: OtherServer, tried: Tried) -> None:
    moving.server = other.resource
    moving.make_table(7, "elsewhere")
    with pytest.raises(ContractError, match=r"is another database cluster \(system identifier"):
        moving.materialise("topic")
    with pytest.raises(ContractError, match=f"cdc-lake resnapshot {moving.flow.name}"):
        moving.materialise("lake")
    assert len(moving.in_lake()) == 20
    moving.resnapshot()
    assert moving.in_lake() == moving.at_source()
    assert len(moving.in_lake()) == 7
    moving.change("afterwards", [1])
    moving.carry()
    tried("losses of the source's stream, each told and mended", 1)


def test_a_restored_backup(moving: Stall, other: OtherServer, tried: Tried, tmp_path: Path) -> None:
    """What was committed after the backup is in the lake, and not at the source any more."""
    moving.server = other.resource
    other.backup(tmp_path / "data")
    moving.server = other.resource
    moving.materialise("topic")  # the connector comes back
    moving.change("after the backup", [2])
    moving.carry()
    other.restore(tmp_path / "data")
    moving.server = other.resource
    moving.change("after the restore", [3])
    assert moving.in_lake() != moving.at_source()
    with pytest.raises(ContractError, match="went on from a backup or as a promoted replica"):
        moving.materialise("topic")
    moving.resnapshot()
    assert moving.in_lake() == moving.at_source()
    moving.change("afterwards", [4])
    moving.carry()
    tried("losses of the source's stream, each told and mended", 1)
