"""Find and delete the files of failed commits in a Hudi table of version 6, by its markers and timeline, without Spark.

The next writer rolls back a commit that was begun and not completed. A writer that was paused during the rollback can
still write files of that commit afterwards. It cannot commit them, but the files are not deleted, and Hudi's readers
treat files older than the timeline's oldest commit as committed. Each such file has a marker with its name.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import fastavro

from cdc_lake.contract.errors import ObjectDamagedError, parse_fault, reset_advice
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import timeline_files

_BEGUN = re.compile(r"(?P<instant>\d{17})(\.inflight|\.(delta|replace)?commit\.(requested|inflight))")
_PLANNED = re.compile(r"(?P<instant>\d{17})\.compaction\.(requested|inflight)")
_COMPLETED = tuple(f".{action}" for action in timeline_files.COMMITS)
_BEGUN_ROLLBACK = re.compile(r"\d{17}\.rollback\.(requested|inflight)")
_MARKER = re.compile(r"(?P<instant>\d{17})/(?P<file>.+)\.marker\.(CREATE|MERGE|APPEND)")


def incomplete_commits(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the instants of commits that were begun, but neither completed nor fully rolled back, oldest first."""
    names = timeline_files.names(store, table_prefix)
    found = {match["instant"] for match in map(_BEGUN.fullmatch, names) if match}
    found -= {name[:17] for name in names if name.endswith(_COMPLETED)}
    for name in names:
        if _BEGUN_ROLLBACK.fullmatch(name) and f"{name[:17]}.rollback" not in names:
            found.update(_instants_in_rollback(store, table_prefix, f"{name[:17]}.rollback.requested"))
    return sorted(found)


def pending_compactions(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the instants of compactions that were planned and not completed, oldest first.

    They need no rollback: until a compaction is executed, readers merge the log files before and after it.
    """
    names = timeline_files.names(store, table_prefix)
    planned = {match["instant"] for match in map(_PLANNED.fullmatch, names) if match}
    return sorted(planned - {name[:17] for name in names if name.endswith(".commit")})


def delete_rolled_back_files(store: ObjectStore, table_prefix: str) -> int:
    """Delete the remaining files and markers of commits that were rolled back; return the number of files.

    Safe at any time, with or without the lease: it deletes only files of commits whose rollback is complete.
    """
    temporary = f"{table_prefix}.hoodie/.temp/"
    markers = {item.key: _MARKER.fullmatch(item.key.removeprefix(temporary)) for item in store.scan(temporary)}
    # The timeline is listed after the markers, because a commit is in the timeline before it has a marker.
    instants = {match["instant"] for match in markers.values() if match}
    if not instants:
        return 0
    names = timeline_files.names(store, table_prefix)
    instants = {instant for instant in instants if not any(name.startswith(f"{instant}.") for name in names)}
    undone = rolled_back(store, table_prefix, instants, names)
    to_delete = {key: match for key, match in markers.items() if match and match["instant"] in undone}
    # Delete each file before its marker: without the marker, the file could not be found after an interruption.
    files = [f"{table_prefix}{match['file']}" for match in to_delete.values() if match["instant"] in match["file"]]
    store.delete(files)
    store.delete(to_delete)
    return len(files)


def rolled_back(store: ObjectStore, table_prefix: str, instants: set[str], names: list[str]) -> set[str]:
    """Return the instants that a completed rollback has undone, among `instants`; `names` are the timeline's files."""
    found: set[str] = set()
    for name in names:
        if name.endswith(".rollback") and any(name[:17] > instant for instant in instants - found):
            found.update(instants & _instants_in_rollback(store, table_prefix, name))
    return found


def _instants_in_rollback(store: ObjectStore, table_prefix: str, rollback: str) -> set[str]:
    """Return the instants that a rollback undoes, from its plan (`.requested`) or metadata; empty if it is archived.

    Both are Avro (Hudi's HoodieRollbackPlan.avsc, HoodieRollbackMetadata.avsc). Their other fields are not used: for a
    merge-on-read table they also name commits that are kept, those of the base files that log files belong to. Raises
    ObjectDamagedError.
    """
    key = f"{table_prefix}.hoodie/{rollback}"
    stored = store.get(key)
    if stored is None:
        return set()
    try:
        [record] = fastavro.reader(BytesIO(stored.body))
        plan: Any = record
        return set(plan["commitsRollback"]) if "commitsRollback" in plan else {plan["instantToRollback"]["commitTime"]}
    except (ValueError, KeyError, TypeError, EOFError, IndexError) as error:
        raise ObjectDamagedError(
            f"Cannot read {key}: it does not name the commits that were rolled back ({parse_fault(error)}). "
            f"Nothing was written. Restore the object, or {reset_advice(object_names.pipeline_of(table_prefix))}."
        ) from error
