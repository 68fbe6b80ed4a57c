"""Queries views in a loop while writers work and are killed: each result must be whole, and each row must be single."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from resources.athena import Athena

_PAUSE_SECONDS = 1.0
"""The pause between two queries. Without it, the queries take half of the processor time of the writers."""


class ViewReader:
    """Runs during a block, and raises its first fault at the end.

    Each view has `rows` rows with an id below `first_other`. One transaction changes them all, so that their `v` is the
    same. Other rows come and go; their `v` is NULL.
    """

    def __init__(self, athena: Athena, views: Sequence[str], rows: int, first_other: int) -> None:
        self._athena, self._views, self._rows, self._first_other = athena, views, rows, first_other
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._fault: Exception | None = None
        self.queries: Counter[str] = Counter()

    def __enter__(self) -> ViewReader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                for view in self._views:
                    self._read(view)
                    self._stopped.wait(_PAUSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - raised at the end of the block
            self._fault = error

    def _read(self, view: str) -> None:
        found: tuple[Any, ...]
        [found] = self._athena.query(
            f"SELECT count(*), count(DISTINCT id), count_if(id < {self._first_other}), min(v), max(v) FROM {view}"
        ).rows
        rows, keys, lasting, oldest, newest = found
        assert rows == keys, f"{view} has {rows} rows of {keys} keys"
        assert lasting == self._rows, f"{view} has {lasting} of {self._rows} rows"
        assert oldest == newest, f"{view} has rows of {oldest} and of {newest}"
        self.queries[view] += 1
