"""The archives of custom plugins: in S3, and zips with jars, as MSK Connect wants them.

Here: looking into one. Not here: what becomes of the plugin (kafkaconnect.py).
"""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


@dataclass(frozen=True)
class Archives:
    """Plugins' archives in the stack's S3."""

    s3: S3Client

    def fault(self, bucket: str, key: str) -> str | None:
        """What is wrong with an archive, None where nothing is."""
        with tempfile.TemporaryFile() as file:
            try:
                self.s3.download_fileobj(bucket, key, file)
            except ClientError as error:
                return f"s3://{bucket}/{key} can't be read: {error.response['Error'].get('Message', error)}"
            file.seek(0)
            try:
                names = zipfile.ZipFile(file).namelist()
            except zipfile.BadZipFile:
                return f"s3://{bucket}/{key} is no ZIP file"
        if not any(name.endswith(".jar") for name in names):
            return f"s3://{bucket}/{key} has no jar"
        return None
