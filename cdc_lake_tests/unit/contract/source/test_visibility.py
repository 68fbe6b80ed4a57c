"""Point.sees() compared with a model of PostgreSQL's transactions with 64-bit ids."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lake.contract.source.visibility import XIDS, Point
from cdc_lake.contract.table.event_order import NO_LSN, Position
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

HISTORIES = 500


@dataclass
class Server:
    """Model of a server that assigns transaction ids and LSNs. `changes` are pairs of both, with 64-bit ids."""

    next_xid: int
    lsn: int = 1000
    running: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    changes: list[tuple[int, int]] = field(default_factory=list)
    latest_ended: int = 0
    needs: dict[int, int] = field(default_factory=dict)
    """The oldest running id when each transaction began: its xmin, which limits the assignment of new ids."""

    @property
    def oldest(self) -> int:
        """Return the oldest id that is still needed."""
        return min((self.needs[xid] for xid in self.running), default=self.next_xid)

    def begin(self) -> None:
        self.needs[self.next_xid] = min(self.running, default=self.next_xid)
        self.running[self.next_xid] = self.lsn
        self.change(self.next_xid)
        self.next_xid += 1

    def change(self, xid: int) -> None:
        self.lsn += 10
        self.changes.append((xid, self.lsn))

    def end(self, xid: int) -> None:
        self.lsn += 10  # the commit record; ids do not depend on when others see it
        del self.running[xid]
        self.ended.add(xid)
        self.latest_ended = max(self.latest_ended, xid)

    def take_point(self) -> Point:
        """Take a snapshot as GetSnapshotData() does: xmax is one after the latest ended id, also if later ids run."""
        xmax = self.latest_ended + 1
        return Point(
            epoch=0,
            lsn=self.lsn,
            horizon=min(self.running.values(), default=self.lsn),
            xmax=xmax,
            in_progress=frozenset(xid for xid in self.running if xid < xmax),
        )

    def stride(self, ids: int) -> None:
        """Skip ids that other databases use, at most as many as the oldest running id permits."""
        limit = self.oldest + XIDS // 2 - 1_000
        self.next_xid = max(self.next_xid, min(self.next_xid + ids, limit) if self.running else self.next_xid + ids)
        self.latest_ended = max(self.latest_ended, self.next_xid - 1 if ids else 0)
        self.lsn += 10


Strides = st.sampled_from([1, XIDS // 2 - 1, XIDS // 2, 3 * XIDS // 4, XIDS, 2 * XIDS]) | st.integers(0, 3 * XIDS)
Steps = st.lists(st.tuples(st.sampled_from(["begin", "change", "end", "stride"]), Strides), min_size=1, max_size=60)


@settings(max_examples=HISTORIES)
@given(start=st.integers(3, 5 * XIDS), before=Steps, after=Steps)
def check_a_history(start: int, before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    server = Server(start, latest_ended=start - 1)
    _run(server, before)
    visible, point = set(server.ended), server.take_point()
    # A held point is itself the oldest id that the server must keep.
    held = min(server.oldest, server.next_xid)
    _run(server, after, held + XIDS // 2 - 1_000)
    reused = {xid % XIDS for xid in point.in_progress}
    for xid, lsn in server.changes:
        if xid in visible and xid % XIDS in reused:
            continue  # the limit that sees() documents; Hypothesis finds such a pair in some thousand histories
        assert point.sees(Position(0, True, lsn), xid % XIDS) == (xid in visible), (xid, lsn, point)


def _run(server: Server, steps: list[tuple[str, int]], limit: int | None = None) -> None:
    for step, number in steps:
        running = sorted(server.running)
        wraparound_limit = server.oldest + XIDS // 2 - 1_000
        if step == "begin" and server.next_xid < min(wraparound_limit, limit or wraparound_limit):
            server.begin()
        elif step == "stride":
            server.stride(number if limit is None else min(number, max(0, limit - server.next_xid)))
        elif running and step == "change":
            server.change(running[number % len(running)])
        elif running and step == "end":
            server.end(running[number % len(running)])


def test_visibility_is_correct_across_wraparounds(count_trials: CountTrials) -> None:
    check_a_history()
    count_trials("histories of transaction ids", HISTORIES)


POINT = Point(epoch=2, lsn=5_000, horizon=3_000, xmax=XIDS + 10, in_progress=frozenset({XIDS - 4, XIDS + 8}))


@pytest.mark.parametrize(
    ("epoch", "streamed", "lsn", "xid", "visible"),
    [
        (2, True, 4_000, 9, True),
        (2, True, 4_000, 8, False),  # in progress
        (2, True, 4_000, XIDS - 4, False),  # in progress, with an id before the wraparound
        (2, True, 4_000, XIDS - 5, True),
        (2, True, 4_000, 10, False),  # wrote before the point and ended after it
        (2, True, 9_000, 11, False),
        (2, True, 2_999, 2_000_000_000, True),  # an id from 2^32 transactions ago
        (2, True, 2_999, 8, False),
        (2, True, 2_999, 10, True),
        (2, True, 3_000, 10, False),  # the horizon itself: only the id decides
        (1, True, 9_000, 11, True),  # of an earlier epoch
        (3, True, 4_000, 10, False),
        (
            2,
            False,
            5_000,
            10,
            True,
        ),  # a snapshot record has the state at its LSN; the reading transaction is irrelevant
        (2, False, 5_001, 3, False),
        (2, False, NO_LSN, None, True),  # read by an incremental snapshot: later changes of the row are streamed
        (2, True, 5_000, None, True),
        (2, True, 5_001, None, False),
    ],
)
def test_examples_of_visible_and_invisible_changes(
    epoch: int, streamed: bool, lsn: int, xid: int | None, visible: bool
) -> None:
    assert POINT.sees(Position(epoch, streamed, lsn), xid) is visible
