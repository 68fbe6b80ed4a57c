"""Stores the rows of a query in a local file for GetQueryResults, and in an object at the output location.

Rows are streamed, so that a large result is never in memory as a whole. Athena's binary `.metadata` and `-manifest.csv`
objects are not written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws_api.athena.errors import invalid_request
from infra.local.aws_api.athena.result_columns import Column

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Row = list[str | None]


@dataclass(frozen=True)
class S3Location:
    """A bucket, and the key of an object or a prefix."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, uri: str) -> S3Location:
        """Parse `s3://bucket/key`.

        Raises:
            AwsError: InvalidRequestException if the URI does not have that form.
        """
        scheme, _, rest = uri.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme != "s3" or not bucket:
            raise invalid_request(f"outputLocation is not a valid S3 path: {uri!r}.")
        return cls(bucket, key)


class ResultFiles:
    """Result files in one folder. The folder is emptied at the start: results are kept while the process runs."""

    def __init__(self, folder: Path, s3: S3Client) -> None:
        self._folder = folder
        self._s3 = s3
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.iterdir():
            stale.unlink()

    def check_bucket(self, location: S3Location) -> None:
        """Check that the bucket exists.

        Raises:
            AwsError: InvalidRequestException if it does not, or S3 does not answer.
        """
        try:
            self._s3.head_bucket(Bucket=location.bucket)
        except (ClientError, BotoCoreError) as error:
            raise invalid_request(f"Unable to verify/create output bucket {location.bucket}: {error}") from error

    def write(self, execution_id: str, columns: list[Column], rows: Iterable[list[Any]]) -> int:
        """Write the rows to the local file and return their number."""
        count = 0
        with self._pages(execution_id).open("w", encoding="utf-8") as pages:
            for values in rows:
                cells = [column.text(value) for column, value in zip(columns, values, strict=True)]
                pages.write(json.dumps(cells) + "\n")
                count += 1
        return count

    def publish(self, execution_id: str, header: Row | None, target: S3Location) -> None:
        """Upload the result to the output location: quoted CSV if the key ends in `.csv`, else tab-separated."""
        line = _csv_line if target.key.endswith(".csv") else _text_line
        body = self._folder / f"{execution_id}.body"
        with body.open("w", encoding="utf-8", newline="") as file:
            if header is not None:
                file.write(line(header))
            with self._pages(execution_id).open(encoding="utf-8") as pages:
                file.writelines(line(json.loads(each)) for each in pages)
        self._s3.upload_file(str(body), target.bucket, target.key)
        body.unlink()

    def page(
        self, execution_id: str, header: Row | None, token: str | None, limit: int
    ) -> tuple[list[Row], str | None]:
        """Return at most `limit` rows from the token's position, and the next page's token, None at the end.

        Raises:
            AwsError: InvalidRequestException if the token is not a position in this result.
        """
        rows: list[Row] = [header] if header is not None and token is None else []
        path = self._pages(execution_id)
        with path.open("rb") as pages:
            pages.seek(self._offset(path, token))
            while len(rows) < limit and (line := pages.readline()):
                rows.append(json.loads(line))
            offset = pages.tell()
        return rows, str(offset) if offset < path.stat().st_size else None

    def share(self, execution_id: str, other_id: str) -> None:
        """Link the rows of an execution to another one. Either of the two files can be deleted first."""
        self._pages(other_id).hardlink_to(self._pages(execution_id))

    def delete(self, execution_id: str) -> None:
        """Delete the local file; the object on S3 stays."""
        self._pages(execution_id).unlink(missing_ok=True)

    def _pages(self, execution_id: str) -> Path:
        return self._folder / f"{execution_id}.jsonl"

    @staticmethod
    def _offset(path: Path, token: str | None) -> int:
        if token is None:
            return 0
        if not token.isdecimal() or int(token) > path.stat().st_size:
            raise invalid_request(f"Invalid NextToken {token!r}.")
        return int(token)


def _csv_line(cells: Row) -> str:
    # NULL is an empty cell without quotes: that distinguishes it from an empty string.
    return ",".join("" if cell is None else '"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


def _text_line(cells: Row) -> str:
    return "\t".join(cell or "" for cell in cells) + "\n"
