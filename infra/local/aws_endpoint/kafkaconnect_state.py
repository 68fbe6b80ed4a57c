"""What `kafkaconnect` keeps of plugins, worker configurations and connectors: one JSON file, replaced as a whole.

Here: the records and their file. Not here: what the operations do with them (kafkaconnect.py).
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from infra.local.aws_endpoint.errors import AwsError
from infra.local.files import write_atomic

ACCOUNT = "123456789012"
Kind = Literal["connector", "custom-plugin", "worker-configuration", "connector-operation"]
Record = dict[str, Any]


class Records:
    """Records by ARN, each a JSON object with `kind`, `arn`, `name` and `created`; saved after each change."""

    def __init__(self, path: Path, region: str) -> None:
        self._path, self._region = path, region
        self._records: dict[str, Record] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def add(self, kind: Kind, name: str, **members: object) -> Record:
        """A new record. Raises ConflictException where one of the kind has the name."""
        if kind != "connector-operation" and any(each["name"] == name for each in self.of(kind)):
            raise AwsError("ConflictException", f"A {kind} with the name {name} already exists.", status=409)
        arn = f"arn:aws:kafkaconnect:{self._region}:{ACCOUNT}:{kind}/{name}/{uuid.uuid4()}-2"
        record = {"kind": kind, "arn": arn, "name": name, "created": now(), **members}
        self._records[arn] = record
        self.save()
        return record

    def get(self, kind: Kind, arn: str) -> Record:
        """A record. Raises NotFoundException."""
        found = self._records.get(arn)
        if found is None or found["kind"] != kind:
            raise AwsError("NotFoundException", f"The {kind} {arn} does not exist.", status=404)
        return found

    def any(self, arn: str) -> Record:
        """A record of whatever kind. Raises NotFoundException."""
        if arn not in self._records:
            raise AwsError("NotFoundException", f"The resource {arn} does not exist.", status=404)
        return self._records[arn]

    def of(self, kind: Kind, prefix: str = "") -> list[Record]:
        """All of a kind whose names begin so, oldest first."""
        found = (each for each in self._records.values() if each["kind"] == kind and each["name"].startswith(prefix))
        return sorted(found, key=lambda each: str(each["created"]))

    def remove(self, arn: str) -> None:
        """Forget a record."""
        self._records.pop(arn, None)
        self.save()

    def save(self) -> None:
        """Write all of them: when this returns, the file has them."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, json.dumps(self._records, indent=1))


def now() -> str:
    """The time as `kafkaconnect` tells it."""
    return datetime.now(UTC).isoformat()
