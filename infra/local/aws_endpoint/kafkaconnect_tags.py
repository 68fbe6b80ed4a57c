"""MSK Connect's tags, of connectors, plugins and worker configurations alike.

Here: telling, adding and taking them. Not here: those that something is made with (they are kept by whoever makes it).
"""

from __future__ import annotations

from typing import Any

from infra.local.aws_endpoint.kafkaconnect_state import Records
from infra.local.aws_endpoint.rest_json import Operation


class Tags:
    """Tags by the ARN of what has them."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def operations(self) -> dict[str, Operation]:
        """The operations by name."""
        return {"ListTagsForResource": self._list, "TagResource": self._tag, "UntagResource": self._untag}

    def _of(self, request: dict[str, Any]) -> dict[str, str]:
        tags: dict[str, str] = self._records.any(request["resourceArn"]).setdefault("tags", {})
        return tags

    def _list(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"tags": self._of(request)}

    def _tag(self, request: dict[str, Any]) -> dict[str, Any]:
        self._of(request).update(request["tags"])
        return {}

    def _untag(self, request: dict[str, Any]) -> dict[str, Any]:
        for name in request["tagKeys"]:
            self._of(request).pop(name, None)
        return {}
