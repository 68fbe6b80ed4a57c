"""The object store as the contract sees it: whole objects, conditional puts, ordered listings.

Here: the protocol and its S3 implementation (boto3), which assets, jobs and executors share.
Not here: what the objects mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

# S3 answers a failed If-None-Match or If-Match with 412, and with 409 while another conditional put of
# the same key is under way (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
_PRECONDITION = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
_MISSING = {"NoSuchKey", "404", "NotFound"}


class PreconditionFailedError(Exception):
    """A conditional put found another object than the one it was meant for."""


@dataclass(frozen=True)
class ObjectInfo:
    """One row of a listing: key, size in bytes, ETag without quotes."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True)
class StoredObject:
    """One object with its body and the user metadata it was put with."""

    key: str
    body: bytes
    etag: str
    metadata: dict[str, str]


class ObjectStore(Protocol):
    """One bucket. Writes are conditional: nothing is overwritten unseen."""

    def get(self, key: str) -> StoredObject | None:
        """The object, or None where there is none."""

    def exists(self, key: str) -> bool:
        """Whether an object has exactly this key."""

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """Put an object that must not exist yet; its ETag. Raises PreconditionFailedError."""

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """Put over the version with this ETag only; the new ETag. Raises PreconditionFailedError."""

    def scan(self, prefix: str, after: str = "", recursive: bool = True) -> Iterator[ObjectInfo]:
        """Objects below the prefix in key order, those after a key only if one is given."""

    def delete(self, keys: Iterable[str]) -> int:
        """Delete objects, those that are already gone included; how many were asked for."""


@dataclass(frozen=True)
class S3Location:
    """Where a bucket is and how to get in; on AWS all but the bucket is left to the environment."""

    bucket: str
    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)

    def store(self) -> S3Store:
        """A store with a client of its own: clients don't travel to executors, locations do."""
        return S3Store(
            self.bucket,
            boto3.client(
                "s3",
                endpoint_url=self.endpoint_url,
                region_name=self.region,
                aws_access_key_id=self.access_key,
                aws_secret_access_key=self.secret_key,
                config=Config(
                    retries={"mode": "standard", "max_attempts": 6},
                    connect_timeout=5,
                    read_timeout=60,
                    s3={"addressing_style": "path"} if self.endpoint_url else {},
                ),
            ),
        )


class S3Store:
    """An ObjectStore over boto3."""

    def __init__(self, bucket: str, client: S3Client) -> None:
        self.bucket = bucket
        self.client = client

    def get(self, key: str) -> StoredObject | None:
        """See ObjectStore."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        return StoredObject(key, answer["Body"].read(), answer["ETag"].strip('"'), answer["Metadata"])

    def exists(self, key: str) -> bool:
        """See ObjectStore."""
        try:
            self.client.head_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return False
            raise
        return True

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """See ObjectStore."""
        try:
            answer = self.client.put_object(
                Bucket=self.bucket, Key=key, Body=body, Metadata=metadata or {}, IfNoneMatch="*"
            )
        except ClientError as error:
            raise _translated(error, key) from error
        return answer["ETag"].strip('"')

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """See ObjectStore."""
        try:
            answer = self.client.put_object(Bucket=self.bucket, Key=key, Body=body, IfMatch=f'"{etag}"')
        except ClientError as error:
            raise _translated(error, key) from error
        return answer["ETag"].strip('"')

    def scan(self, prefix: str, after: str = "", recursive: bool = True) -> Iterator[ObjectInfo]:
        """See ObjectStore."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix, StartAfter=after, Delimiter="" if recursive else "/"
        )
        for page in pages:
            for item in page.get("Contents", []):
                yield ObjectInfo(item["Key"], item["Size"], item["ETag"].strip('"'))

    def delete(self, keys: Iterable[str]) -> int:
        """See ObjectStore."""
        count = 0
        batch: list[str] = []
        for key in keys:
            batch.append(key)
            if len(batch) == 1000:  # the most that DeleteObjects takes
                count += self._delete_batch(batch)
                batch = []
        return count + (self._delete_batch(batch) if batch else 0)

    def _delete_batch(self, keys: list[str]) -> int:
        answer = self.client.delete_objects(
            Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        for failure in answer.get("Errors", []):
            raise OSError(
                f"could not delete s3://{self.bucket}/{failure.get('Key')}: {failure.get('Message')}; "
                "the other objects of the batch may be gone: run it again"
            )
        return len(keys)


def _translated(error: ClientError, key: str) -> Exception:
    if error.response["Error"]["Code"] in _PRECONDITION:
        return PreconditionFailedError(key)
    return error
