"""Count the live and older files of a Hudi table of version 6 from a listing, without Spark."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cdc_lake.contract.objects.store import ObjectInfo

SMALL_BYTES = 2**20
"""A base file with fewer bytes is small: for a query, opening it takes longer than reading it."""
_BASE = re.compile(r"(?P<file>[^_/]+)_[\d-]+_(?P<instant>\d{17})\.parquet")
_LATER = "~"
"""A text that sorts after every instant."""
_LOG = re.compile(r"\.(?P<file>[^_/]+)_(?P<instant>\d{17})\.log\.\d+_[\d-]+")


@dataclass(frozen=True)
class Files:
    """Number and bytes of a table's files: live base files, their log files, and files kept for earlier states."""

    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    older_files: int
    older_bytes: int
    partitions: int


def count(
    listed: Iterable[ObjectInfo],
    table_prefix: str,
    commits: Collection[str],
    oldest: str,
    replaced: Collection[tuple[str, str]] = (),
) -> Files:
    """Count the files below a table's prefix.

    `commits` are the instants of the completed commits in the timeline, and `oldest` is the first of them: a file with
    an older instant belongs to an archived commit. Base files of commits that are not completed are not counted. All
    files of the file groups in `replaced` (timeline.replaced_groups()) count as older files.
    """
    bases: dict[tuple[str, str], dict[str, int]] = {}
    logs: list[tuple[tuple[str, str], str, int]] = []
    for item in listed:
        folder, _, name = item.key.removeprefix(table_prefix).rpartition("/")
        if folder.startswith(".hoodie"):
            continue
        if (found := _BASE.fullmatch(name)) and (found["instant"] in commits or found["instant"] < oldest):
            bases.setdefault((folder, found["file"]), {})[found["instant"]] = item.size
        elif found := _LOG.fullmatch(name):
            logs.append(((folder, found["file"]), found["instant"], item.size))
    newest = {group: _LATER if group in replaced else max(sizes) for group, sizes in bases.items()}
    live = [size for group, sizes in bases.items() for at, size in sizes.items() if at == newest[group]]
    older = [size for group, sizes in bases.items() for at, size in sizes.items() if at != newest[group]]
    # A log file's name has the instant of its base file, or of a pending compaction after that base file.
    live_logs = [size for group, at, size in logs if at >= newest.get(group, "")]
    older += [size for group, at, size in logs if at < newest.get(group, "")]
    return Files(
        base_files=len(live),
        base_bytes=sum(live),
        log_files=len(live_logs),
        log_bytes=sum(live_logs),
        older_files=len(older),
        older_bytes=sum(older),
        partitions=len({folder for folder, _ in bases}),
    )
