"""The object store as the contract sees it: whole objects, conditional puts, ordered listings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ResponseStreamingError,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.secret_fields import RoleKey

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

# S3 answers a failed If-None-Match or If-Match with 412, and with 409 while another conditional put of
# the same key is under way (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
_PRECONDITION = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
_MISSING = {"NoSuchKey", "404", "NotFound"}
# boto3 asks again where no answer begins, not where one ends in the middle of an object. Not for silence: it has waited
# for that five times before it says so.
_RETRY_TRUNCATED = Retrying(
    retry=retry_if_exception_type((IncompleteReadError, ResponseStreamingError)),
    stop=stop_after_attempt(4),
    wait=wait_exponential(multiplier=0.2, max=2),
    reraise=True,
)
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"}
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


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
    """One bucket. Writes are conditional: nothing is overwritten unseen.

    Every method raises StoreUnreachableError where the store does not answer, StoreRefusedError where it refuses.
    """

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
    access_key: RoleKey = field(default=None, repr=False)
    secret_key: RoleKey = field(default=None, repr=False)

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
                    retries={"mode": "standard", "max_attempts": 5},
                    connect_timeout=5,
                    read_timeout=20,
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
        with self._explained("reading", key):
            return _RETRY_TRUNCATED(self._get, key)

    def _get(self, key: str) -> StoredObject | None:
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        return StoredObject(key, answer["Body"].read(), answer["ETag"].strip('"'), answer["Metadata"])

    def exists(self, key: str) -> bool:
        """See ObjectStore."""
        with self._explained("looking for", key):
            try:
                self.client.head_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if error.response["Error"]["Code"] in _MISSING:
                    return False
                raise
            return True

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """See ObjectStore."""
        with self._explained("writing", key), _translate_precondition(key):
            answer = self.client.put_object(
                Bucket=self.bucket, Key=key, Body=body, Metadata=metadata or {}, IfNoneMatch="*"
            )
        return answer["ETag"].strip('"')

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """See ObjectStore."""
        with self._explained("replacing", key), _translate_precondition(key):
            answer = self.client.put_object(Bucket=self.bucket, Key=key, Body=body, IfMatch=f'"{etag}"')
        return answer["ETag"].strip('"')

    def scan(self, prefix: str, after: str = "", recursive: bool = True) -> Iterator[ObjectInfo]:
        """See ObjectStore."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix, StartAfter=after, Delimiter="" if recursive else "/"
        )
        with self._explained("listing", prefix):
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
        with self._explained("deleting", keys[0]):
            answer = self.client.delete_objects(
                Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
            )
        for failure in answer.get("Errors", []):
            raise StoreRefusedError(
                f"could not delete s3://{self.bucket}/{failure.get('Key')}: {failure.get('Message')}; "
                "the other objects of the batch may be gone: run it again"
            )
        return len(keys)

    @contextmanager
    def _explained(self, doing: str, key: str) -> Iterator[None]:
        """Raise what boto3 gave up with as the contract's error: which object of which store, and what to do."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise self._fault(error, f"{doing} s3://{self.bucket}/{key}") from error

    def _fault(self, error: ClientError | BotoCoreError, what: str) -> ContractError:
        endpoint = self.client.meta.endpoint_url
        local = urlsplit(endpoint).hostname in _LOOPBACK
        said = " ".join(str(error).split())  # one line: an executor's error reaches the driver by its last line
        code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
        if code in _EXPIRED or code in _THROTTLED:
            todo = (
                "the credentials have expired: get new ones" if code in _EXPIRED else "wait until less is asked of it"
            )
            return StoreRefusedError(
                f"the object store at {endpoint} failed at {what} ({said}): {todo}, then run this again"
            )
        if isinstance(error, ClientError | NoCredentialsError | PartialCredentialsError):
            todo = (
                "`cdc-lake status` shows the local store, `cdc-lake logs s3` its log"
                if local
                else "check the credentials, what they allow, and that the bucket exists"
            )
            return StoreRefusedError(f"the object store at {endpoint} failed at {what} ({said}): {todo}")
        todo = (
            "`cdc-lake status` shows whether the local store runs, `cdc-lake up` starts it; then run this again"
            if local
            else "check the network and the endpoint, then run this again"
        )
        return StoreUnreachableError(
            f"the object store at {endpoint} stopped answering at {what} ({said}). What was committed before stays, "
            f"nothing is committed twice: {todo}"
        )


@contextmanager
def _translate_precondition(key: str) -> Iterator[None]:
    """Raise a refused condition as what it is."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in _PRECONDITION:
            raise PreconditionFailedError(key) from error
        raise
