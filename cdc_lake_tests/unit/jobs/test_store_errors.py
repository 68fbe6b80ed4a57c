"""Failures of S3A, found in the text of a Java exception."""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import StoreRefusedError, StoreUnreachableError
from cdc_lake.jobs.store_errors import store_error

# The message of py4j, shortened.
TRACE = """An error occurred while calling z:org.apache.hudi.HoodieSparkSqlWriter.write.
: org.apache.hudi.exception.HoodieUpsertException: Failed to upsert for commit time 20260101000000000
\tat org.apache.hudi.table.action.commit.BaseWriteHelper.write(BaseWriteHelper.java:79)
Caused by: {}
\tat org.apache.hadoop.fs.s3a.S3AUtils.translateException(S3AUtils.java:214)
"""
S3A = "org.apache.hadoop.fs.s3a."
ON = "PUT 0-byte object on lake/shop/orders/.hoodie/1.inflight: com.amazonaws."


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (f"{S3A}AWSClientIOException: {ON}SdkClientException: Connection refused", StoreUnreachableError),
        (f"{S3A}AWSNoResponseException: {ON}AmazonS3Exception: no answer", StoreUnreachableError),
        (f"{S3A}AWSServiceThrottledException: {ON}AmazonS3Exception: SlowDown", StoreRefusedError),
        (f"{S3A}AWSStatus500Exception: {ON}AmazonS3Exception: InternalError", StoreRefusedError),
        (f"{S3A}AWSBadRequestException: {ON}AmazonS3Exception: ExpiredToken", StoreRefusedError),
        (f"{S3A}auth.NoAuthWithAWSException: No AWS Credentials {ON}", StoreRefusedError),
        (f"java.nio.file.AccessDeniedException: s3a://b/lake/shop/orders: {ON}AmazonS3Exception", StoreRefusedError),
    ],
)
def test_a_store_error_is_found_with_its_request(cause: str, kind: type[Exception]) -> None:
    error = store_error(TRACE.format(cause))
    assert type(error) is kind
    assert "lake/shop/orders" in error.user_message
    assert "nothing is committed twice" in error.user_message
    assert "\n" not in error.user_message
    assert "\tat " not in error.user_message


@pytest.mark.parametrize(
    "cause",
    [
        "",
        "java.lang.OutOfMemoryError: Java heap space",
        "org.apache.hudi.exception.HoodieException: the table is broken",
        "java.io.FileNotFoundException: no such object",
    ],
)
def test_other_errors_are_not_store_errors(cause: str) -> None:
    assert store_error(TRACE.format(cause)) is None
