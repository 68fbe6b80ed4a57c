"""Glue's Data Catalog as moto has it, with every change on disk before it is acknowledged.

Here: which Glue operations are offered (databases, tables, partitions), one lock around them, and the
save after each that changes something.
Not here: the file (glue_state.py). Crawlers, jobs, schemas, connections and column statistics are refused.
Unlike AWS it lists in one page, keeps no old table versions across a restart, and does not fold names to
lower case: callers send lower case.
"""

from __future__ import annotations

import logging
from threading import RLock
from typing import Any

import moto.glue.urls
from moto.core.common_types import TYPE_RESPONSE
from moto.glue.responses import GlueResponse

from infra.local.aws_endpoint.errors import AwsError, unknown_operation
from infra.local.aws_endpoint.glue_state import GlueState

log = logging.getLogger(__name__)

_READS = frozenset(
    {
        *("GetDatabase", "GetDatabases"),
        *("GetTable", "GetTables", "GetTableVersion", "GetTableVersions"),
        *("GetPartition", "GetPartitions", "BatchGetPartition"),
    }
)
_CHANGES = frozenset(
    {
        *("CreateDatabase", "UpdateDatabase", "DeleteDatabase"),
        *("CreateTable", "UpdateTable", "DeleteTable", "BatchDeleteTable"),
        *("CreatePartition", "UpdatePartition", "DeletePartition"),
        *("BatchCreatePartition", "BatchUpdatePartition", "BatchDeletePartition"),
    }
)
# There are no column statistics here: none to be had, and none to delete. Trino asks around each write, also
# when it is told not to collect any.
_NO_STATISTICS = {
    "GetColumnStatisticsForTable": '{"ColumnStatisticsList": []}',
    "GetColumnStatisticsForPartition": '{"ColumnStatisticsList": []}',
    "DeleteColumnStatisticsForTable": "{}",
    "DeleteColumnStatisticsForPartition": "{}",
}
OFFERED = _READS | _CHANGES | _NO_STATISTICS.keys()


def serve_glue(state: GlueState) -> None:
    """Make moto's server answer Glue from `state`, which has been restored."""
    lock = RLock()

    class DurableGlueResponse(GlueResponse):
        """One request at a time, so that what is saved is what the answered requests made."""

        def call_action(self) -> TYPE_RESPONSE:
            action = self._get_action()
            if action not in OFFERED:
                return _answer(unknown_operation("glue", action, OFFERED), self.response_headers)
            if action in _NO_STATISTICS:
                return 200, self.response_headers, _NO_STATISTICS[action]
            with lock:
                answer = super().call_action()
                # A batch that failed in part is answered with 200 and has changed something.
                if action in _CHANGES and int(answer[0]) < 300:
                    try:
                        state.save()
                    except OSError as error:
                        log.exception("The Glue catalog could not be saved; taking back %s.", action)
                        state.restore()
                        failure = AwsError("InternalServiceException", f"Not saved: {error}", status=500)
                        return _answer(failure, self.response_headers)
                return answer

    moto.glue.urls.url_paths["{0}/$"] = DurableGlueResponse.dispatch


def _answer(error: AwsError, headers: dict[str, Any]) -> TYPE_RESPONSE:
    return error.status, {**headers, "x-amzn-ErrorType": error.code}, error.as_json()
