"""A poll, a reconciliation or a build of a refined table is killed; readers see no gap, and the next run repairs it.

Views and Hudi table are queried all the time. After each kill, another process completes the work, and all tables have
the rows of the source; at the end, `verify` compares them. CI draws a failpoint, a full run has all. The seed draws the
format of the landed objects.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.contract.failpoints import REGISTRY
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.writers import polled_actions, writer_actions
from cdc_lake_tests.faults.writers.polled_actions import NAME
from cdc_lake_tests.faults.writers.view_reader import ViewReader
from cdc_lake_tests.faults.writers.writer_process import Died, Writer
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn, seed
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

# The action that reaches the failpoints, by the first part of their names.
ACTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "poll": (polled_actions.poll, ()),
    "reconcile": (polled_actions.reconcile, ()),
    "refined": (polled_actions.materialise, ("dataset",)),
}
# A build writes two groups of partitions: the kill at the second one leaves half of the table written.
KILLS = [f"{name}=kill" for name in REGISTRY if name.partition(".")[0] in ACTIONS] + ["refined.before_group=kill@2"]
REFINED = f"{NAME}.goods_by_kind"
VIEWS = (f"{NAME}.goods_latest", f"{NAME}_lake.goods_current", REFINED)
ROWS, FIRST_OTHER = 150, 1000
# More kinds than one statement can write as partitions, so that a build is written in groups.
TABLE = f"""
create schema {NAME};
create table {NAME}.goods (id int primary key, kind text, v int, changed timestamptz);
create function {NAME}.touch() returns trigger language plpgsql as $$ begin new.changed = now(); return new; end $$;
alter table {NAME}.goods alter changed set not null;
create index on {NAME}.goods (changed);
create trigger touch before insert or update on {NAME}.goods for each row execute function {NAME}.touch();
insert into {NAME}.goods select n, 'k' || n % 130, 0 from generate_series(1, {ROWS}) n;
insert into {NAME}.goods values ({FIRST_OTHER}, 'k1', null);
"""


class Source:
    """The table at the source."""

    def __init__(self, stack: NorthwindStack) -> None:
        self._stack = stack
        self.execute(TABLE)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL, and return its rows."""
        with self._stack.resources["postgres"].connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def change(self, round_: int) -> None:
        """Update all lasting rows, insert another one, and delete that of the previous round."""
        other = FIRST_OTHER + round_
        self.execute(
            f"update {NAME}.goods set v = {round_} where id < {FIRST_OTHER};"
            f"insert into {NAME}.goods values ({other}, 'k1', null); delete from {NAME}.goods where id = {other - 1}"
        )

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows, without the time of their change."""
        return self.execute(f"select id, kind, v from {NAME}.goods order by id")


def complete(writer: Writer, defs: Path, *more: str) -> None:
    """Poll, reconcile, land and apply everything, and materialise `more` stages.

    The reconciliation finds the deleted row of a round, because the previous round has applied it.
    """
    writer.do(polled_actions.poll, defs)
    writer.do(polled_actions.reconcile, defs)
    writer.do(polled_actions.materialise, defs, "raw", "lake", *more)


@pytest.mark.timeout(1800)
def test_readers_see_whole_tables_while_polls_reconciliations_and_builds_are_killed(
    stack: NorthwindStack, tmp_path: Path, count_trials: CountTrials
) -> None:
    polled_actions.write_definitions(tmp_path, random.Random(f"{seed()} format").choice(("json", "parquet")))
    source, athena = Source(stack), stack.resources["athena"]
    with ExitStack() as running:
        writer = running.enter_context(stack.writer())
        writer.do(polled_actions.materialise, tmp_path, "source")
        complete(writer, tmp_path, "dataset")
        reader = running.enter_context(ViewReader(athena, VIEWS, ROWS, FIRST_OTHER))
        for round_, kill in enumerate(drawn(KILLS, in_ci=1), 1):
            action, arguments = ACTIONS[kill.partition(".")[0]]
            source.change(round_)
            if action is not polled_actions.poll:
                writer.do(polled_actions.poll, tmp_path)
                writer.do(polled_actions.materialise, tmp_path, "raw", "lake")
            writer.do(writer_actions.arm, kill)
            with pytest.raises(Died) as died:
                writer.do(action, tmp_path, *arguments)
            assert died.value.code == -signal.SIGKILL
            writer = running.enter_context(stack.writer())
            # A build writes 130 partitions: only rounds that kill one repeat it.
            complete(writer, tmp_path, *arguments)
            for view in VIEWS:
                if view != REFINED or arguments:
                    assert list(athena.query(f"SELECT id, kind, v FROM {view} ORDER BY id").rows) == source.rows(), view
            count_trials("kills at failpoints", 1)
        assert writer.do(polled_actions.verify, tmp_path) == {"files.goods": True, "goods": True}
    assert set(reader.queries) == set(VIEWS)
    count_trials("queries while polls, reconciliations and builds were killed", reader.queries.total())
