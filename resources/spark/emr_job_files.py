"""The S3 objects that a job on EMR is started with and answers by, as a Dagster resource."""

from __future__ import annotations

from pathlib import Path

from botocore.exceptions import ClientError
from pydantic import Field

from resources.aws.client import AwsRequestFailed, AwsResource

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
# S3 answers a failed If-None-Match with 412, and with 409 while another conditional put of the key is under way.
_THERE = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})


class JobFiles(AwsResource):
    """A folder of a bucket. Every method raises Unreachable, AccessRefused or AwsRequestFailed."""

    bucket: str
    prefix: str = Field(default="spark/", description="Where everything is kept; it ends with a slash.")
    scheme: str = Field(default="s3", description="Of the addresses that Spark is given; EMR's own is s3.")

    def uri(self, name: str) -> str:
        """The address of an object, for AWS and Spark."""
        return f"{self.scheme}://{self.bucket}/{self.prefix}{name}"

    def put_new(self, name: str, body: bytes) -> bool:
        """Put an object unless there is one of that name; whether it was put."""
        with self.explained(f"Writing {self.uri(name)}"):
            try:
                self.client("s3").put_object(Bucket=self.bucket, Key=f"{self.prefix}{name}", Body=body, IfNoneMatch="*")
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _THERE:
                    return False
                raise
        return True

    def upload(self, name: str, path: Path) -> bool:
        """Put a file that may be large, unless an object of that name and size is there; whether it was put.

        The name has to tell the content: two who upload at once write the same.
        """
        if self.size(name) == path.stat().st_size:
            return False
        with self.explained(f"Writing {self.uri(name)}"):
            self.client("s3").upload_file(str(path), self.bucket, f"{self.prefix}{name}")
        return True

    def size(self, name: str) -> int | None:
        """How many bytes an object has, None where there is none."""
        with self.explained(f"Looking for {self.uri(name)}"):
            try:
                return int(
                    self.client("s3").head_object(Bucket=self.bucket, Key=f"{self.prefix}{name}")["ContentLength"]
                )
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _MISSING:
                    return None
                raise

    def read(self, name: str) -> bytes | None:
        """What an object has, None where there is none."""
        try:
            with self.explained(f"Reading {self.uri(name)}"):
                body: bytes = (
                    self.client("s3").get_object(Bucket=self.bucket, Key=f"{self.prefix}{name}")["Body"].read()
                )
                return body
        except AwsRequestFailed as error:
            if error.code in _MISSING:
                return None
            raise
