"""The rows that are polled, as SQL text: the table or query, and the condition of a window.

A window contains the rows whose last change is at or after its lower bound and before its upper one. Every change
before the upper bound is committed when the window is read. A repeated window therefore contains the same rows, or
fewer: a row that has changed since is in a later window.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake.contract.source.poll_state import Bound


def quoted(name: str) -> str:
    """Return an SQL identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal that is valid for both values of standard_conforming_strings."""
    escaped = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{escaped}'" if "\\" in text else f"'{escaped}'"


@dataclass(frozen=True)
class PolledRows:
    """A table or query, and the columns that show the last change of a row.

    `relation` is SQL for a FROM clause. `timestamp` and `incrementing` are names of columns, empty for none.
    `time_zone` is that of the sessions that write a `timestamp` without time zone, empty for one with time zone.
    `divisible` is true for an ordinary table, which can be read in ranges of ctid.
    """

    relation: str
    timestamp: str = ""
    time_zone: str = ""
    incrementing: str = ""
    divisible: bool = False

    def window(self, lower: Bound | None, upper: Bound) -> str:
        """Return the condition of the rows that changed from `lower` (None: ever) to before `upper`.

        If both columns are set, the timestamp of a new row may be NULL until its first update; then its id decides.
        """
        if not self.incrementing:
            return self._by_time(lower, upper)
        by_id = self._by_id(lower, upper)
        if not self.timestamp:
            return by_id
        return f"({self._by_time(lower, upper)} or ({self._time} is null and {by_id}))"

    def from_beginning(self, lower: Bound | None) -> bool:
        """Return whether the window after `lower` begins with the first row: it may be the whole table.

        The first poll by an incrementing column reads no row, because it is not known which ids are settled.
        """
        return lower is None or (not self.timestamp and lower.last_id is None)

    def settled(self, upper: Bound) -> str:
        """Return the condition of the rows that no later window contains; the condition is never NULL.

        Their last change is before `upper`, or their only polled column is a time and NULL: no window has such rows.
        """
        by_time = [f"{self._time} < {self._moment(upper)}"] if self.timestamp else []
        by_id = [self._by_id(None, upper)] if self.incrementing else []
        return f"coalesce({', '.join([*by_time, *by_id, 'false' if by_id else 'true'])})"

    @property
    def _time(self) -> str:
        return f"q.{quoted(self.timestamp)}"

    def _by_time(self, lower: Bound | None, upper: Bound) -> str:
        since = "" if lower is None else f"{self._time} >= {self._moment(lower)} and "
        return f"({since}{self._time} < {self._moment(upper)})"

    def _by_id(self, lower: Bound | None, upper: Bound) -> str:
        if upper.last_id is None:
            return "false"
        column = f"q.{quoted(self.incrementing)}"
        since = "" if lower is None or lower.last_id is None else f"{column} > {lower.last_id} and "
        return f"({since}{column} <= {upper.last_id})"

    def _moment(self, bound: Bound) -> str:
        moment = f"timestamptz '{bound.at.isoformat(sep=' ')}'"
        return f"({moment} at time zone {literal(self.time_zone)})" if self.time_zone else moment
