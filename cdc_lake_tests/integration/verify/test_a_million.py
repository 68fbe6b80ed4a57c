"""One changed cell in a large table, on the tables of the benchmark `benchmarks/verify.py`."""

from __future__ import annotations

from benchmarks.verify import VerifyBenchmark
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake_tests.integration.verify.conftest import NewTable
from cdc_lake_tests.pytest_hooks.long_test_sizes import size
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

ROWS = size(in_ci=100_000, full=1_000_000)


def test_one_changed_cell_in_a_large_table_is_reported(verified_tables: NewTable, count_trials: CountTrials) -> None:
    made = verified_tables()
    engines = made.lake.engines
    spec = UpsertSpec(engines.location, "million", "million", "public.million", "million", ("id",))
    benchmark = VerifyBenchmark(made.source.postgres, engines.spark, spec, ROWS)
    benchmark.fill()
    benchmark.change_one_cell()
    found = benchmark.verify()
    assert (found.compared, found.missing, found.extra, found.different, found.doubled) == (ROWS, 0, 0, 1, 0)
    (one,) = found.differences
    before = ROWS // 2 * 3 % 1000
    assert (one.key, one.columns) == ({"id": str(ROWS // 2)}, {"qty": (str(before), str(before + 1))})
    count_trials("rows of which one changed cell was found", ROWS)
