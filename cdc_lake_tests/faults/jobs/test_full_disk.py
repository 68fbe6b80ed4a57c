"""A store whose disk is full: the run fails with the store's error and commits nothing; with free space it succeeds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from cdc_lake.contract.errors import StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake_tests.faults.jobs.filled_table import fill, rows
from cdc_lake_tests.faults.jobs.s3a_retries import shorten
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.engines import Engines, make_bucket
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.landing.landing_topic import Topic
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.attach import load_endpoints

BUCKET, _NUMBERS = "full-disk", count(1)
DISK = "24m"
LEFT = 96 * 1024
"""Enough for a lease and a manifest, too little for a data file."""
KEYS = 6000
"""Neither the base file nor the log file of so many changes fits."""
FAULTS = (StoreRefusedError, StoreUnreachableError)
"""s3proxy answers 500, or closes the connection of a put that it cannot write."""


@dataclass(frozen=True)
class SmallDisk:
    """A small file system, used by the store only."""

    folder: Path

    @contextmanager
    def full(self, left: int = LEFT) -> Iterator[None]:
        """Fill the disk during the block, except for `left` bytes."""
        filler = self.folder / "filler"
        found = os.statvfs(self.folder)
        try:
            with filler.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - left)
            yield
        finally:
            filler.unlink()


@pytest.fixture(scope="module")
def disk(count_trials: CountTrials) -> Iterator[tuple[Path, SmallDisk]]:
    """Return a state folder whose S3 server stores its objects on a small disk."""
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
            count_trials("FULL DISKS NOT TRIED: this user may not mount a small disk", 0)
            pytest.skip(f"mounting a small disk is not permitted: {mounted.stderr.strip()}")
        try:
            yield home, SmallDisk(data)
        finally:
            subprocess.run(["umount", str(data)], check=True)


@pytest.fixture(scope="module")
def small(job_engines: Engines, disk: tuple[Path, SmallDisk]) -> Iterator[tuple[Engines, SmallDisk]]:
    """Run a store on the small disk, with the other tests' broker and Spark."""
    home, folder = disk
    with running_stack(home, ("s3",)):
        at = load_endpoints(home)
        secret = at.s3_secret_key.get_secret_value()
        # S3A keeps the connection of a bucket's name, and pytest can set this fixture up for each type of tables.
        bucket = f"{BUCKET}-{next(_NUMBERS)}"
        location = S3Location(bucket, at.s3_endpoint, at.region, at.s3_access_key, secret)
        make_bucket(location)
        hadoop = job_engines.spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
        for name, value in (("endpoint", at.s3_endpoint), ("access.key", at.s3_access_key), ("secret.key", secret)):
            hadoop.set(f"fs.s3a.bucket.{bucket}.{name}", value)
        shorten(job_engines.spark, bucket)
        yield replace(job_engines, location=location), folder


def test_landing_on_a_full_disk_fails_and_lands_all_later(
    small: tuple[Engines, SmallDisk], count_trials: CountTrials
) -> None:
    engines, disk = small
    topic = Topic(engines, "full-disk", 1)
    try:
        topic.transaction({0: 50}, values=[b'{"long": "%s"}' % (b"x" * 4 * LEFT)] * 2)
        with disk.full(), pytest.raises(FAULTS, match=BUCKET):
            topic.land()
        assert topic.chain.length() == 0
        assert topic.land().records == 52
        count_trials("runs that a full disk ended", 1)
    finally:
        topic.close()


def test_an_upsert_on_a_full_disk_fails_and_applies_all_later(
    small: tuple[Engines, SmallDisk], table_type: TableType, count_trials: CountTrials
) -> None:
    engines, disk = small
    table = LakeTable(engines, f"full-{table_type}", COLUMNS, KEY, table_type)
    expected = fill(table, 100, keys=KEYS)
    table.upsert()
    before = timeline.last_commit(table.store, table.spec.prefix)
    changed = fill(table, 10_000, keys=KEYS)
    with disk.full(), pytest.raises(FAULTS, match=f"lake/full-{table_type}/orders"):
        table.upsert(replace(table.spec, lease_seconds=2.0))
    assert timeline.last_commit(table.store, table.spec.prefix) == before
    assert rows(table) == expected
    assert table.upsert(replace(table.spec, lease_wait_seconds=10.0)).commit.updates == KEYS
    assert rows(table) == expected | changed
    count_trials("runs that a full disk ended", 1)
