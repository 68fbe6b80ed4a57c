"""The objects of QuickSight, in memory."""

from __future__ import annotations

import time
from threading import RLock
from typing import Any, Literal

from infra.local.aws_api.errors import AwsError

ACCOUNT = "123456789012"
Kind = Literal["DataSource", "DataSet", "Ingestion", "Analysis", "Dashboard"]
Record = dict[str, Any]


class Objects:
    """Records with `kind`, `id`, `arn`, `name`, `created` and `updated` (seconds since 1970), and more by kind.

    Requests and ingestions hold `lock` while they read and change them.
    """

    def __init__(self, region: str) -> None:
        self._region = region
        self._records: dict[str, Record] = {}
        self.lock = RLock()

    def arn(self, kind: Kind, id: str) -> str:
        """Return the ARN of an object, whether it exists or not. An ingestion has the id `<dataset>/ingestion/<id>`."""
        path = "dataset" if kind == "Ingestion" else kind.lower()
        return f"arn:aws:quicksight:{self._region}:{ACCOUNT}:{path}/{id}"

    def add(self, kind: Kind, id: str, **members: object) -> Record:
        """Add a record. Raises ResourceExistsException if the kind has one with this id."""
        arn, now = self.arn(kind, id), time.time()
        if arn in self._records:
            raise AwsError("ResourceExistsException", f"{arn} already exists.", status=409)
        self._records[arn] = {"kind": kind, "id": id, "arn": arn, "created": now, "updated": now, **members}
        return self._records[arn]

    def get(self, kind: Kind, id: str) -> Record:
        """Return a record. Raises ResourceNotFoundException."""
        found = self.find(self.arn(kind, id))
        if found is None:
            raise AwsError("ResourceNotFoundException", f"{self.arn(kind, id)} is not found.", status=404)
        return found

    def find(self, arn: str) -> Record | None:
        """Return the record with this ARN, None if there is none."""
        return self._records.get(arn)

    def of(self, kind: Kind) -> list[Record]:
        """Return all records of a kind, the oldest first."""
        return [each for each in self._records.values() if each["kind"] == kind]

    def remove(self, record: Record) -> None:
        """Remove a record, and the ingestions of a dataset."""
        for arn in [arn for arn in self._records if arn == record["arn"] or arn.startswith(f"{record['arn']}/")]:
            del self._records[arn]


def invalid(message: str) -> AwsError:
    """Return QuickSight's error for a parameter with an invalid value."""
    return AwsError("InvalidParameterValueException", message)
