"""The tags of a connector on MSK Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def ensure(client: Any, arn: str, wanted: Mapping[str, str]) -> bool:  # noqa: ANN401 - boto3's `kafkaconnect`
    """Set the connector's tags that are missing or have another value; return whether one was set."""
    if not wanted:
        return False
    actual = client.list_tags_for_resource(resourceArn=arn).get("tags", {})
    changes = {name: value for name, value in wanted.items() if actual.get(name) != value}
    if changes:
        client.tag_resource(resourceArn=arn, tags=changes)
    return bool(changes)
