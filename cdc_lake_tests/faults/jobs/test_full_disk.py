"""A store whose disk is full: the run ends with the store's word, nothing is half there, and space is all it needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cdc_lake.contract.errors import StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import timeline
from cdc_lake_tests.faults.jobs.test_store_faults import fill, rows, shorten
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.engines import Engines, make_bucket
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.landing_topic import Topic
from cdc_lake_tests.local_stack import running_stack, scratch_home
from cdc_lake_tests.trial_counts import Tried
from infra.local.stack.attach import load_endpoints

BUCKET = "full-disk"
DISK = "24m"
LEFT = 96 * 1024
"""Enough for a lease and a manifest, too little for a data file."""
FAULTS = (StoreRefusedError, StoreUnreachableError)
"""s3proxy answers 500, or ends the connection of a put that it can't write."""


@dataclass(frozen=True)
class SmallDisk:
    """A file system that the store has to itself."""

    folder: Path

    @contextmanager
    def full(self, left: int = LEFT) -> Iterator[None]:
        """Nearly all of it is taken during the block."""
        taken = self.folder / "taken"
        found = os.statvfs(self.folder)
        try:
            with taken.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - left)
            yield
        finally:
            taken.unlink()


@pytest.fixture(scope="module")
def disk(tried: Tried) -> Iterator[tuple[Path, SmallDisk]]:
    """A state folder whose S3 server keeps its objects on a small disk."""
    with scratch_home() as home:
        data = home / "s3" / "data"
        data.mkdir(parents=True)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(data)],
            capture_output=True,
            text=True,
            check=False,
        )
        if mounted.returncode != 0:
            tried("FULL DISKS NOT TRIED: this user may not mount a small one", 0)
            pytest.skip(f"a small disk takes a user who may mount one: {mounted.stderr.strip()}")
        try:
            yield home, SmallDisk(data)
        finally:
            subprocess.run(["umount", str(data)], check=True)


@pytest.fixture(scope="module")
def small(engines: Engines, disk: tuple[Path, SmallDisk]) -> Iterator[tuple[Engines, SmallDisk]]:
    """The store on the small disk, with the other tests' broker and Spark."""
    home, folder = disk
    with running_stack(home, ("s3",)):
        at = load_endpoints(home)
        secret = at.s3_secret_key.get_secret_value()
        location = S3Location(BUCKET, at.s3_endpoint, at.region, at.s3_access_key, secret)
        make_bucket(location)
        hadoop = engines.spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
        for name, value in (("endpoint", at.s3_endpoint), ("access.key", at.s3_access_key), ("secret.key", secret)):
            hadoop.set(f"fs.s3a.bucket.{BUCKET}.{name}", value)
        shorten(engines.spark, BUCKET)
        yield replace(engines, location=location), folder


def test_landing_on_a_full_disk(small: tuple[Engines, SmallDisk], tried: Tried) -> None:
    engines, disk = small
    topic = Topic(engines, "full-disk", 1)
    try:
        topic.transaction({0: 50}, values=[b'{"long": "%s"}' % (b"x" * 4 * LEFT)] * 2)
        with disk.full(), pytest.raises(FAULTS, match=BUCKET):
            topic.land()
        assert topic.chain.length() == 0
        assert topic.land().records == 52
        tried("runs that a full disk ended", 1)
    finally:
        topic.close()


def test_an_upsert_on_a_full_disk(small: tuple[Engines, SmallDisk], tried: Tried) -> None:
    engines, disk = small
    table = LakeTable(engines, "full", COLUMNS, KEY)
    expected = fill(table, 100)
    table.upsert()
    before = timeline.last_commit(table.store, table.spec.prefix)
    changed = fill(table, 1000, keys=20)
    with disk.full(), pytest.raises(FAULTS, match="lake/full/orders"):
        table.upsert(replace(table.spec, lease_seconds=2.0))
    assert timeline.last_commit(table.store, table.spec.prefix) == before
    assert rows(table) == expected
    assert table.upsert(replace(table.spec, lease_wait_seconds=10.0)).updates == 20
    assert rows(table) == expected | changed
    tried("runs that a full disk ended", 1)
