"""The Glue service: databases, tables and partitions of moto's catalog, saved after each change (catalog_file.py).

Crawlers, jobs, schemas, connections and column statistics are rejected. Unlike AWS, the service lists everything in one
page, loses old table versions at a restart, and does not convert names to lower case: callers send lower case.
"""

from __future__ import annotations

import logging
from threading import RLock
from typing import Any

import moto.glue.urls
from moto.core.common_types import TYPE_RESPONSE
from moto.glue.responses import GlueResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from infra.local.aws_api.errors import AwsError, unknown_operation
from infra.local.aws_api.glue.catalog_file import CatalogFile
from infra.local.aws_api.server import Application

log = logging.getLogger(__name__)

# The operations that the pipeline and Trino call.
_READS = frozenset(
    {"GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartition", "GetPartitions", "BatchGetPartition"}
)
_CHANGES = frozenset(
    {
        *("CreateDatabase", "DeleteDatabase"),
        *("CreateTable", "UpdateTable", "DeleteTable"),
        *("CreatePartition", "UpdatePartition", "DeletePartition"),
        *("BatchCreatePartition", "BatchUpdatePartition"),
    }
)
# Trino requests column statistics around each write, even if its settings disable their collection. The answers are
# empty.
_NO_STATISTICS = {
    "GetColumnStatisticsForTable": '{"ColumnStatisticsList": []}',
    "GetColumnStatisticsForPartition": '{"ColumnStatisticsList": []}',
    "DeleteColumnStatisticsForTable": "{}",
    "DeleteColumnStatisticsForPartition": "{}",
}
OFFERED = _READS | _CHANGES | _NO_STATISTICS.keys()


def glue_service(file: CatalogFile) -> Application:
    """Return the Glue service, with the catalog restored from the file.

    Raises:
        ValueError: The file is not a catalog.
    """
    file.restore()
    lock = RLock()

    class DurableGlueResponse(GlueResponse):
        """Handles one request at a time, so that the file contains exactly the changes of the answered requests."""

        def call_action(self) -> TYPE_RESPONSE:
            action = self._get_action()
            if action not in OFFERED:
                return _answer(unknown_operation("glue", action, OFFERED), self.response_headers)
            if action in _NO_STATISTICS:
                return 200, self.response_headers, _NO_STATISTICS[action]
            with lock:
                answer = super().call_action()
                # A batch that fails for some items returns 200 and has changed the catalog.
                if action in _CHANGES and int(answer[0]) < 300:
                    try:
                        file.save()
                    except OSError as error:
                        log.exception("Cannot save the Glue catalog; %s was undone.", action)
                        file.restore()
                        failure = AwsError(
                            "InternalServiceException", f"Cannot save the Glue catalog: {error}", status=500
                        )
                        return _answer(failure, self.response_headers)
                return answer

    moto.glue.urls.url_paths["{0}/$"] = DurableGlueResponse.dispatch
    return DomainDispatcherApplication(create_backend_app)


def _answer(error: AwsError, headers: dict[str, Any]) -> TYPE_RESPONSE:
    return error.status, {**headers, "x-amzn-ErrorType": error.code}, error.as_json()
