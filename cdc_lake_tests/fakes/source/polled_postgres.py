"""A fake PostgreSQL for polling: rows with the time of their last change, and a bound that tests set."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from pydantic import PrivateAttr

from cdc_lake.contract.source.poll_state import Bound
from cdc_lake_tests.fakes.source.postgres import FakePostgres
from resources.postgres.polling import TransactionsBound
from resources.postgres.table_files import TableFiles

START = datetime(2026, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(r"timestamptz '([^']+)'")


class PolledPostgres(FakePostgres):
    """One polled table; its rows are shared by copies of the resource."""

    _changed: dict[int, datetime] = PrivateAttr(default_factory=dict)
    _clock: list[datetime] = PrivateAttr(default_factory=lambda: [START])
    _indexed: list[bool] = PrivateAttr(default_factory=lambda: [True])
    _node: list[int] = PrivateAttr(default_factory=lambda: [1])

    def change(self, key: int) -> None:
        """Change a row now; the clock advances by a second."""
        self.change_at_bound(key)
        self.advance_clock()

    def change_at_bound(self, key: int) -> None:
        """Change a row now; a poll does not see it before the clock advances."""
        self._changed[key] = self._clock[0]

    def advance_clock(self) -> None:
        """Advance the clock by a second."""
        self._clock[0] += timedelta(seconds=1)

    def set_clock(self, now: datetime) -> None:
        """Set the clock."""
        self._clock[0] = now

    def drop_index(self) -> None:
        """Drop the index of the polled column."""
        self._indexed[0] = False

    def window(self, lower: Bound | None, upper: Bound) -> list[int]:
        """Return the rows of a window."""
        since = START if lower is None else lower.at
        return [key for key, at in self._changed.items() if since <= at < upper.at]

    def transactions_bound(self) -> TransactionsBound:
        """See Postgres."""
        return TransactionsBound(self._clock[0], None, None)

    def finds_row(self, relation: str, condition: str) -> bool:  # noqa: ARG002 - one table
        """See Postgres."""
        bounds = [Bound(at=datetime.fromisoformat(text)) for text in _MOMENT.findall(condition)]
        return bool(self.window(bounds[0] if len(bounds) > 1 else None, bounds[-1]))

    def has_index(self, schema: str, table: str, column: str) -> bool:  # noqa: ARG002 - one column
        """See Postgres."""
        return self._indexed[0]

    def has_unique_key(self, schema: str, table: str, key: Collection[str]) -> bool:
        """See Postgres."""
        return set(self._keys[schema, table]) <= set(key)

    def count(self, relation: str) -> int:  # noqa: ARG002 - one table
        """See Postgres."""
        return len(self._changed)

    def files(self, schema: str, table: str) -> TableFiles:  # noqa: ARG002 - one table
        """See Postgres."""
        return TableFiles((self._node[0],), 1)

    def rewrite(self) -> None:
        """Do what VACUUM FULL does."""
        self._node[0] += 1
