"""The S3 server: s3proxy, which stores objects as files on disk."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from infra.artifacts.artifacts import jars
from infra.artifacts.class_path import ClassPath
from infra.artifacts.java import java_home
from infra.errors import StackError
from infra.files import write_atomic
from infra.local.jvm import jar_version, java_command, temporary_option
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.stack.endpoints import BUCKET, REGION
from infra.local.templates import render

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

HEAP = "1g"
"""s3proxy buffers each signed put in memory, up to 128 MB, unless it is multipart."""
DIGEST = "user.user.content-md5"
"""The extended attribute that s3proxy sets on an object when its put is complete."""
UNFINISHED = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

log = logging.getLogger(__name__)


class S3Component:
    """One server with one bucket."""

    name = "s3"
    port_names: tuple[str, ...] = ("s3",)
    needs: tuple[str, ...] = ()

    def version(self) -> str:
        """Return s3proxy's version."""
        return jar_version(jars("s3proxy"), "s3proxy")

    def prepare(self, context: StackContext) -> None:
        """Write the configuration; delete incomplete files of puts that a kill interrupted."""
        folder = context.folder(self.name)
        context.temporary(self.name)
        data = folder / "data"
        data.mkdir(exist_ok=True)
        _require_attributes(folder)
        values: dict[str, str | int | Path] = {
            "host": LOOPBACK,
            "port": context.ports["s3"],
            "access_key": context.secrets.s3_access_key,
            "secret_key": context.secrets.s3_secret_key,
            "data": data,
        }
        write_atomic(folder / "s3proxy.properties", render("s3/s3proxy.properties", values))
        if swept := sweep(data):
            log.info("s3: deleted the files of %d interrupted put%s", swept, "" if swept == 1 else "s")

    def launch(self, context: StackContext) -> Launch:
        """Return the server's process."""
        folder = context.folder(self.name)
        arguments = ("--properties", str(folder / "s3proxy.properties"))
        options = (temporary_option(folder),)
        return Launch(java_command(self.class_path(), "org.gaul.s3proxy.Main", arguments, HEAP, options))

    def class_path(self) -> ClassPath:
        """Return s3proxy's jars."""
        return ClassPath(self.name, java_home(25), (jars("s3proxy"),))

    def probe(self, context: StackContext) -> None:
        """Check that the server answers: it rejects an unsigned request with 403."""
        import httpx  # noqa: PLC0415 - `status` loads this module and does not need httpx

        answer = httpx.get(f"http://{LOOPBACK}:{context.ports['s3']}/", timeout=5, trust_env=False)
        if answer.status_code != 403:
            raise StackError(f"the S3 server returned {answer.status_code} instead of 403 for an unsigned request")

    def after_ready(self, context: StackContext) -> None:
        """Create the bucket through the S3 API."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - as above

        try:
            _client(context).create_bucket(Bucket=BUCKET)
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
                raise


def _client(context: StackContext) -> S3Client:
    import boto3  # noqa: PLC0415 - as above
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client(
        "s3",
        endpoint_url=f"http://{LOOPBACK}:{context.ports['s3']}",
        region_name=REGION,
        aws_access_key_id=context.secrets.s3_access_key,
        aws_secret_access_key=context.secrets.s3_secret_key,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )


def sweep(data: Path) -> int:
    """Delete the files of unfinished puts (`<key>-<uuid>` without a digest) and return their number.

    Call it only while no server runs on the folder: a put in progress looks the same.
    """
    swept = 0
    for parent, _, names in os.walk(data):
        for name in names:
            path = Path(parent, name)
            if UNFINISHED.search(name) and DIGEST not in os.listxattr(path):
                path.unlink()
                swept += 1
    return swept


def _require_attributes(folder: Path) -> None:
    probe = folder / ".xattr"
    probe.touch()
    try:
        os.setxattr(probe, "user.cdc-lake", b"1")
    except OSError as error:
        raise StackError(
            f"Cannot store objects in {folder}: its file system has no user extended attributes ({error.strerror}), "
            "in which the S3 server keeps each object's metadata. Put the state folder on another file system "
            "(--home or CDC_LAKE_HOME)."
        ) from error
    finally:
        probe.unlink()
