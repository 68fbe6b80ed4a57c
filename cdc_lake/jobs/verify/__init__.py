"""verify: compare a lake table with its source, row by row, as a Spark job.

spec.py is the input, report.py the result, run.py the job. Spark reads the source (source_rows.py, postgres_copy.py)
and the lake (compared_rows.py), converts them to the same types (source_values.py), hashes them and matches them by key
(matching.py). Keys that changed after the snapshot (snapshot_visibility.py) are compared by their raw events
(changed_keys.py, key_filter.py); for keys that differ, cell_differences.py reads the columns.
docs/decisions/0007-the-oracle.md has the reasons.
"""

from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.jobs.lake_state import LakeState
from cdc_lake.jobs.verify.report import Difference, VerifyReport
from cdc_lake.jobs.verify.run import run
from cdc_lake.jobs.verify.spec import KafkaRange, SourceTable, VerifySpec

__all__ = [
    "Difference",
    "KafkaRange",
    "LakeState",
    "SourceAccess",
    "SourceTable",
    "VerifyReport",
    "VerifySpec",
    "run",
]
