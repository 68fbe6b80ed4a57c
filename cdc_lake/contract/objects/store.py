"""The object store: read whole objects, put them conditionally, and list them in key order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects import s3_retries
from cdc_lake.contract.secret_fields import RoleKey

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

# S3 answers a failed If-None-Match or If-Match with 412, with 409 while another conditional put of the same key is in
# progress, and a put with If-Match with NoSuchKey if there is no object
# (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
_PRECONDITION = {"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409"}
_MISSING = {"NoSuchKey", "404", "NotFound"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"}
_NO_CREDENTIALS = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)
"""boto3 raises these before it sends a request: it finds no credentials, or the login of `aws sso login` expired."""
_SERVER_ERROR = HTTPStatus.INTERNAL_SERVER_ERROR
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class PreconditionFailedError(Exception):
    """The condition of a put was not met: the object exists, was replaced or deleted, or another put of it runs."""


@dataclass(frozen=True)
class ObjectInfo:
    """One row of a listing: key, size in bytes, ETag without quotes, time of the last write by the store's clock."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True)
class StoredObject:
    """One object: its body and user metadata."""

    key: str
    body: bytes
    etag: str
    metadata: dict[str, str]


class ObjectStore(Protocol):
    """One bucket. Writes are conditional: a writer never overwrites an object that it has not read.

    Every method raises StoreUnreachableError if the store does not answer, and StoreRefusedError if it rejects the
    request.
    """

    def get(self, key: str) -> StoredObject | None:
        """Return the object; None if it does not exist."""

    def exists(self, key: str) -> bool:
        """Return whether an object with exactly this key exists."""

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """Put an object that must not exist yet, and return its ETag. Raises PreconditionFailedError."""

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """Replace the version with this ETag, and return the new ETag. Raises PreconditionFailedError."""

    def scan(self, prefix: str, after: str = "", recursive: bool = True) -> Iterator[ObjectInfo]:
        """Yield the objects below the prefix in key order; with `after`, only those after that key.

        With `recursive=False`, yields only the objects directly below the prefix.
        """

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders right below the prefix, without a slash, sorted."""

    def delete(self, keys: Iterable[str]) -> int:
        """Delete objects; return the number of keys, including keys without an object."""


_NEW_CLIENT = Lock()
"""Threads may share clients, but must not create them from boto3's default session at the same time."""


@dataclass(frozen=True)
class S3Location:
    """A bucket, its endpoint and credentials; on AWS, the environment supplies all but the bucket."""

    bucket: str
    endpoint_url: str | None = None
    region: str | None = None
    access_key: RoleKey = field(default=None, repr=False)
    secret_key: RoleKey = field(default=None, repr=False)

    def store(self) -> S3Store:
        """Return a store with this process's client. A location can be pickled for executors, a client cannot."""
        return S3Store(self.bucket, client_of(self))


# Cached, because a new client takes 10 ms, and has to connect again.
@lru_cache(maxsize=16)
def client_of(location: S3Location) -> S3Client:
    """Return the client of a location, which the threads of this process share."""
    with _NEW_CLIENT:
        return boto3.client(
            "s3",
            endpoint_url=location.endpoint_url,
            region_name=location.region,
            aws_access_key_id=location.access_key,
            aws_secret_access_key=location.secret_key,
            config=s3_retries.client_config(path_style=location.endpoint_url is not None),
        )


os.register_at_fork(after_in_child=client_of.cache_clear)  # processes cannot share connections


class S3Store:
    """An ObjectStore over boto3."""

    def __init__(self, bucket: str, client: S3Client) -> None:
        self.bucket = bucket
        self.client = client

    def get(self, key: str) -> StoredObject | None:
        """See ObjectStore."""
        with self._translate_errors("read", key):
            return s3_retries.RETRY_BODY(self._get, key)

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
        with self._translate_errors("find", key):
            try:
                self.client.head_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if error.response["Error"]["Code"] in _MISSING:
                    return False
                raise
            return True

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """See ObjectStore."""
        with self._translate_errors("write", key), _translate_precondition(key):
            answer = self.client.put_object(
                Bucket=self.bucket, Key=key, Body=body, Metadata=metadata or {}, IfNoneMatch="*"
            )
        return answer["ETag"].strip('"')

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """See ObjectStore."""
        with self._translate_errors("replace", key), _translate_precondition(key):
            answer = self.client.put_object(Bucket=self.bucket, Key=key, Body=body, IfMatch=f'"{etag}"')
        return answer["ETag"].strip('"')

    def scan(self, prefix: str, after: str = "", recursive: bool = True) -> Iterator[ObjectInfo]:
        """See ObjectStore."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix, StartAfter=after, Delimiter="" if recursive else "/"
        )
        with self._translate_errors("list", prefix):
            for page in pages:
                for item in page.get("Contents", []):
                    # s3proxy lists a put in progress, under a temporary name and without an ETag.
                    if "ETag" in item:
                        yield ObjectInfo(item["Key"], item["Size"], item["ETag"].strip('"'), item["LastModified"])

    def folders(self, prefix: str) -> list[str]:
        """See ObjectStore."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix, Delimiter="/")
        with self._translate_errors("list", prefix):
            found = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", [])]
        return sorted(each.removeprefix(prefix).rstrip("/") for each in found)

    def delete(self, keys: Iterable[str]) -> int:
        """See ObjectStore."""
        count = 0
        batch: list[str] = []
        for key in keys:
            batch.append(key)
            if len(batch) == 1000:  # the limit of DeleteObjects
                count += self._delete_batch(batch)
                batch = []
        return count + (self._delete_batch(batch) if batch else 0)

    def _delete_batch(self, keys: list[str]) -> int:
        with self._translate_errors("delete", keys[0]):
            answer = self.client.delete_objects(
                Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
            )
        for failure in answer.get("Errors", []):
            raise StoreRefusedError(
                f"Cannot delete s3://{self.bucket}/{failure.get('Key')}: {failure.get('Message')}. "
                "The other objects of the batch may be deleted. Run this again."
            )
        return len(keys)

    @contextmanager
    def _translate_errors(self, operation: str, key: str) -> Iterator[None]:
        """Translate boto3's errors into the contract's, which name the object, the store, and what to do."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise self._contract_error(error, f"Cannot {operation} s3://{self.bucket}/{key}") from error

    def _contract_error(self, error: ClientError | BotoCoreError, what: str) -> ContractError:
        endpoint = self.client.meta.endpoint_url
        local = urlsplit(endpoint).hostname in _LOOPBACK
        # One line, because Spark's driver gets only the last line of an executor's error.
        cause = " ".join(str(error).split())
        code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
        if code in _EXPIRED or code in _THROTTLED:
            todo = "Get new credentials" if code in _EXPIRED else "Wait until the store has fewer requests"
            return StoreRefusedError(
                f"{what}: the object store at {endpoint} rejected the request ({cause}). {todo}, then run this again."
            )
        if isinstance(error, _NO_CREDENTIALS):
            return StoreRefusedError(
                f"{what}: boto3 has no valid credentials ({cause}). Set credentials, or log in again with `aws sso "
                "login`, then run this again."
            )
        if isinstance(error, ClientError):
            failed = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _SERVER_ERROR
            happened = "had an internal error" if failed else "rejected the request"
            todo = "Check the credentials and their permissions, and that the bucket exists."
            if local:
                todo = "`cdc-lake status` shows the local store, `cdc-lake logs s3` its log."
            elif failed:
                todo = "Run this again; if it fails again, look for an outage of the store."
            return StoreRefusedError(f"{what}: the object store at {endpoint} {happened} ({cause}). {todo}")
        todo = (
            "`cdc-lake status` shows whether the local store runs, `cdc-lake up` starts it. Then run this again."
            if local
            else "Check the network and the endpoint, then run this again."
        )
        return StoreUnreachableError(
            f"{what}: the object store at {endpoint} did not answer ({cause}). Earlier commits are kept, and nothing "
            f"is committed twice. {todo}"
        )


@contextmanager
def _translate_precondition(key: str) -> Iterator[None]:
    """Raise PreconditionFailedError if S3 rejects a condition."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in _PRECONDITION:
            raise PreconditionFailedError(
                f"{key} exists, was replaced or deleted, or another put of it runs"
            ) from error
        raise
