"""Files of failed writers in a Hudi table of version 6, found by its markers and timeline, without Spark.

The next writer rolls back a commit that was begun and not completed. A writer that was paused meanwhile may still
write files of that commit. It cannot commit them, but they stay, and Hudi's readers treat files older than the
timeline's oldest commit as committed. Each such file has a marker with its name.
"""

from __future__ import annotations

import re

from cdc_lake.contract.objects.store import ObjectStore

_BEGUN = re.compile(r"(?P<instant>\d{17})(\.inflight|\.(delta|replace)?commit\.(requested|inflight))")
_COMPLETED = (".commit", ".deltacommit", ".replacecommit")
_BEGUN_ROLLBACK = re.compile(r"\d{17}\.rollback\.(requested|inflight)")
_INSTANT = re.compile(rb"\d{17}")
_MARKER = re.compile(r"(?P<instant>\d{17})/(?P<file>.+)\.marker\.(CREATE|MERGE|APPEND)")


def incomplete_commits(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the instants of commits that were begun, but neither completed nor fully rolled back, oldest first."""
    names = _timeline(store, table_prefix)
    found = {match["instant"] for match in map(_BEGUN.fullmatch, names) if match}
    found -= {name[:17] for name in names if name.endswith(_COMPLETED)}
    for name in names:
        if _BEGUN_ROLLBACK.fullmatch(name) and f"{name[:17]}.rollback" not in names:
            found.update(_instants_in_rollback(store, table_prefix, f"{name[:17]}.rollback.requested"))
    return sorted(found)


def delete_rolled_back_files(store: ObjectStore, table_prefix: str) -> int:
    """Delete the files and markers of commits that were rolled back; return the number of files.

    Safe at any time, with or without the lease: it deletes only files of commits whose rollback is complete.
    """
    temporary = f"{table_prefix}.hoodie/.temp/"
    markers = {item.key: _MARKER.fullmatch(item.key.removeprefix(temporary)) for item in store.scan(temporary)}
    # The timeline after the markers: a commit is in the timeline before it has a marker.
    suspects = {match["instant"] for match in markers.values() if match}
    if not suspects:
        return 0
    names = _timeline(store, table_prefix)
    suspects = {instant for instant in suspects if not any(name.startswith(f"{instant}.") for name in names)}
    over = rolled_back(store, table_prefix, suspects, names)
    doomed = {key: match for key, match in markers.items() if match and match["instant"] in over}
    # The file before its marker: without the marker the file could not be found again.
    files = [f"{table_prefix}{match['file']}" for match in doomed.values() if match["instant"] in match["file"]]
    store.delete(files)
    store.delete(doomed)
    return len(files)


def rolled_back(store: ObjectStore, table_prefix: str, instants: set[str], names: list[str]) -> set[str]:
    """Return those of the instants that a completed rollback has undone; `names` are the timeline's file names."""
    found: set[str] = set()
    for name in names:
        if name.endswith(".rollback") and any(name[:17] > instant for instant in instants - found):
            found.update(instants & _instants_in_rollback(store, table_prefix, name))
    return found


def _instants_in_rollback(store: ObjectStore, table_prefix: str, rollback: str) -> set[str]:
    """Return the instants in a rollback's file, except its own: Avro stores text unchanged."""
    stored = store.get(f"{table_prefix}.hoodie/{rollback}")
    named = set() if stored is None else {match.decode() for match in _INSTANT.findall(stored.body)}
    return named - {rollback[:17]}


def _timeline(store: ObjectStore, table_prefix: str) -> list[str]:
    folder = f"{table_prefix}.hoodie/"
    return [item.key.removeprefix(folder) for item in store.scan(folder, recursive=False)]
