"""Another or a restored database cluster at the source's address is refused before anything is read from it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home, source_postgres
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.attach import load_endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome
from resources.postgres.resource import Postgres


@dataclass(frozen=True)
class OtherServer:
    """A second PostgreSQL server with the first one's password, as a replacement would have it."""

    stack: Stack

    @property
    def data(self) -> Path:
        """Return its data directory."""
        return self.stack.home.path / "postgres" / "data"

    @property
    def resource(self) -> Postgres:
        """Return its resource."""
        at = load_endpoints(self.stack.home.path)
        return source_postgres(at)

    def restore(self, backup: Path) -> None:
        """Replace the data by a copy, as a restore of a backup does; the server then starts a new timeline."""
        self.stack.down()
        shutil.rmtree(self.data)
        shutil.copytree(backup, self.data)
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("restore_command = 'false'\nhot_standby = off\n")  # no connection before the end of recovery
        (self.data / "recovery.signal").touch()
        self.set_owner()
        self.stack.up(["postgres"])

    def backup(self, to: Path) -> None:
        """Copy the data of the server while it is down."""
        self.stack.down()
        shutil.copytree(self.data, to)
        self.stack.up(["postgres"])

    def set_owner(self) -> None:
        """Set the data's owner to that of its folder."""
        folder = self.data.parent.stat()
        for path in (self.data, *self.data.rglob("*")):
            shutil.chown(path, folder.st_uid, folder.st_gid)


@pytest.fixture(scope="module")
def other(stack: NorthwindStack) -> Iterator[OtherServer]:
    """Run the second server, without data."""
    with scratch_home() as home:
        there = StackHome(home)
        there.make()
        shutil.copy(stack.cli.stack.home.secrets_file, there.secrets_file)
        with running_stack(home, ["postgres"]) as other:
            yield OtherServer(other)


@pytest.fixture(scope="module")
def moving(stack: NorthwindStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallPipeline]:
    """Return a pipeline whose server the tests replace."""
    assert stack.cli
    made = SmallPipeline("moving", tmp_path_factory.mktemp("defs"))
    made.materialise()
    yield made
    made.resources["connect"].delete(made.loaded.connector)
    made.server = None
    made.loaded.source_postgres(made.resources["postgres"]).drop_slot(made.loaded.slot)


def test_another_cluster_is_refused_until_a_resnapshot(
    moving: SmallPipeline, other: OtherServer, count_trials: CountTrials
) -> None:
    moving.server = other.resource
    moving.create_table(7, "elsewhere")
    with pytest.raises(ContractError, match=r"is another database cluster \(system identifier"):
        moving.materialise("topic")
    with pytest.raises(ContractError, match=f"cdc-lake resnapshot {moving.loaded.name}"):
        moving.materialise("lake")
    assert len(moving.in_lake()) == 20
    moving.resnapshot()
    assert moving.in_lake() == moving.at_source()
    assert len(moving.in_lake()) == 7
    moving.change("afterwards", [1])
    moving.land_and_compare()
    count_trials("losses of the source's stream, reported and repaired", 1)


def test_a_restored_backup_is_refused_until_a_resnapshot(
    moving: SmallPipeline, other: OtherServer, count_trials: CountTrials, tmp_path: Path
) -> None:
    """What was committed after the backup is in the lake, but no longer at the source."""
    moving.server = other.resource
    other.backup(tmp_path / "data")
    moving.server = other.resource
    moving.materialise("topic")  # the connector starts again
    moving.change("after the backup", [2])
    moving.land_and_compare()
    other.restore(tmp_path / "data")
    moving.server = other.resource
    moving.change("after the restore", [3])
    assert moving.in_lake() != moving.at_source()
    with pytest.raises(ContractError, match="was restored from a backup or is a promoted replica"):
        moving.materialise("topic")
    moving.resnapshot()
    assert moving.in_lake() == moving.at_source()
    moving.change("afterwards", [4])
    moving.land_and_compare()
    count_trials("losses of the source's stream, reported and repaired", 1)
