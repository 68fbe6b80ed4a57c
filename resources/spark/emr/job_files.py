"""The S3 objects of jobs on EMR, as a Dagster resource: code, jars, specs and reports."""

from __future__ import annotations

from pathlib import Path

from botocore.exceptions import ClientError
from pydantic import Field
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from resources.aws.aws_resource import AwsRequestFailed, AwsResource

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
# S3 rejects a put with If-None-Match by 412 if the key exists, and by 409 during another conditional put of the key.
_EXISTS = frozenset({"PreconditionFailed", "412"})
_IN_PROGRESS = frozenset({"ConditionalRequestConflict", "409"})


def _in_progress(error: BaseException) -> bool:
    return isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") in _IN_PROGRESS


_RETRY_CONFLICTS = Retrying(
    retry=retry_if_exception(_in_progress),
    stop=stop_after_attempt(6),
    wait=wait_random_exponential(multiplier=0.05, max=2),
    reraise=True,
)


class JobFiles(AwsResource):
    """A folder of a bucket. Every method raises Unreachable, AccessRefused or AwsRequestFailed."""

    bucket: str
    prefix: str = Field(default="spark/", description="Prefix of all keys; it ends with a slash.")
    scheme: str = Field(default="s3", description="The scheme of URIs for Spark; s3 is EMR's own file system.")

    def uri(self, name: str) -> str:
        """Return the URI of an object, for AWS and Spark."""
        return f"{self.scheme}://{self.bucket}/{self.prefix}{name}"

    def put_new(self, name: str, body: bytes) -> bool:
        """Create an object unless it exists; return whether it was created. Waits for a put that is in progress."""
        with self.translate_errors(f"write {self.uri(name)}"):
            put = self.client("s3").put_object
            try:
                _RETRY_CONFLICTS(put, Bucket=self.bucket, Key=f"{self.prefix}{name}", Body=body, IfNoneMatch="*")
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _EXISTS:
                    return False
                raise
        return True

    def upload(self, name: str, path: Path) -> bool:
        """Upload a file of any size unless an object of that name and size exists; return whether it was uploaded.

        The name has to identify the content, so that concurrent uploads write the same bytes.
        """
        if self.size(name) == path.stat().st_size:
            return False
        with self.translate_errors(f"write {self.uri(name)}"):
            self.client("s3").upload_file(str(path), self.bucket, f"{self.prefix}{name}")
        return True

    def size(self, name: str) -> int | None:
        """Return the size of an object in bytes, None if it does not exist."""
        with self.translate_errors(f"find {self.uri(name)}"):
            try:
                return int(
                    self.client("s3").head_object(Bucket=self.bucket, Key=f"{self.prefix}{name}")["ContentLength"]
                )
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _MISSING:
                    return None
                raise

    def read(self, name: str) -> bytes | None:
        """Return the content of an object, None if it does not exist."""
        try:
            with self.translate_errors(f"read {self.uri(name)}"):
                body: bytes = (
                    self.client("s3").get_object(Bucket=self.bucket, Key=f"{self.prefix}{name}")["Body"].read()
                )
                return body
        except AwsRequestFailed as error:
            if error.code in _MISSING:
                return None
            raise
