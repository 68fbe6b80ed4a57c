"""What `quicksight` keeps of its objects: one JSON file, replaced as a whole.

Here: records by kind and id, and their file. Not here: what the operations do with them (quicksight.py).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import RLock
from typing import Any, Literal

from infra.local.aws_api.errors import AwsError
from infra.local.files import write_atomic

ACCOUNT = "123456789012"
Kind = Literal["DataSource", "DataSet", "Ingestion", "Analysis", "Dashboard"]
Record = dict[str, Any]

_TYPES = {"DataSource": "DATA_SOURCE", "DataSet": "DATA_SET"}
"""What errors call a kind, where that is not its name in capitals."""


class Objects:
    """Records, each a JSON object with `kind`, `id`, `arn`, `created` and `updated` (seconds since 1970).

    Whoever reads and changes them holds `lock`. An ingestion's id is `<data set>/ingestion/<its own>`, as in its ARN.
    """

    def __init__(self, path: Path, region: str) -> None:
        self._path, self._region = path, region
        self.lock = RLock()
        self._saved = path.read_text(encoding="utf-8") if path.exists() else "{}"
        self._records: dict[str, Record] = json.loads(self._saved)

    def arn(self, kind: Kind, id: str) -> str:
        """The ARN of an object, whether it is there or not."""
        path = "dataset" if kind == "Ingestion" else kind.lower()
        return f"arn:aws:quicksight:{self._region}:{ACCOUNT}:{path}/{id}"

    def add(self, kind: Kind, id: str, **members: object) -> Record:
        """A new record. Raises ResourceExistsException where one of the kind has the id."""
        arn = self.arn(kind, id)
        if arn in self._records:
            raise _error("ResourceExistsException", kind, f"{arn} already exists.", 409)
        now = time.time()
        self._records[arn] = {"kind": kind, "id": id, "arn": arn, "created": now, "updated": now, **members}
        self.save()
        return self._records[arn]

    def get(self, kind: Kind, id: str) -> Record:
        """A record. Raises ResourceNotFoundException."""
        found = self.at(self.arn(kind, id))
        if found is None:
            raise _error("ResourceNotFoundException", kind, f"{self.arn(kind, id)} is not found.", 404)
        return found

    def at(self, arn: str) -> Record | None:
        """The record with that ARN, None where there is none."""
        return self._records.get(arn)

    def of(self, kind: Kind) -> list[Record]:
        """All of a kind, oldest first."""
        return sorted((each for each in self._records.values() if each["kind"] == kind), key=lambda it: it["created"])

    def remove(self, record: Record) -> None:
        """Forget a record."""
        self._records.pop(record["arn"], None)
        self.save()

    def save(self) -> None:
        """Write all of them, where they have changed: when this returns, the file has them."""
        text = json.dumps(self._records, indent=1)
        if text == self._saved:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, text)
        self._saved = text


def invalid(message: str) -> AwsError:
    """QuickSight's error for a parameter's value."""
    return AwsError("InvalidParameterValueException", message)


def _error(code: str, kind: Kind, message: str, status: int) -> AwsError:
    return AwsError(code, message, status=status, ResourceType=_TYPES.get(kind, kind.upper()))
