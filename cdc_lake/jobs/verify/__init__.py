"""verify: is the lake table what the source's changes add up to? The oracle, as a Spark job.

spec.py and report.py are what goes in and what comes out; run.py is the job. Both sides are read by Spark (sides.py,
copying.py), brought to the same types (values.py), hashed and matched by key (matching.py). Keys that changed after the
point (visible.py) are resolved by their raw events (resolving.py, narrowing.py); of keys that differ, the columns are
looked up (details.py). docs/decisions/0007-the-oracle.md tells why it is built so.
"""

from cdc_lake.jobs.verify.report import Difference, VerifyReport
from cdc_lake.jobs.verify.run import run
from cdc_lake.jobs.verify.spec import KafkaRange, LakeState, SourceAccess, SourceTable, VerifySpec

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
