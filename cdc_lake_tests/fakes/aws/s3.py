"""A fake of S3 over HTTP, in memory: puts and gets of whole objects, for boto3 and for child processes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config

from cdc_lake_tests.fakes.server import listening

_SESSION = boto3.Session()


@dataclass
class MemoryS3:
    """All buckets: objects by `bucket/key`; `puts` in order."""

    objects: dict[str, bytes] = field(default_factory=dict)
    puts: list[str] = field(default_factory=list)
    url: str = ""
    _lock: Any = field(default_factory=Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request (WSGI)."""
        key, method = environ["PATH_INFO"].lstrip("/"), environ["REQUEST_METHOD"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self._lock:
            status, answer = self._answer(method, key, body, environ.get("HTTP_IF_NONE_MATCH"))
        tag = hashlib.md5(answer if method != "PUT" else body, usedforsecurity=False).hexdigest()
        modified = ("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        start_response(status, [("ETag", f'"{tag}"'), modified, ("Content-Length", str(len(answer)))])
        return [] if method == "HEAD" else [answer]

    def _answer(self, method: str, key: str, body: bytes, condition: str | None) -> tuple[str, bytes]:
        if method == "PUT":
            if condition == "*" and key in self.objects:
                return "412 Precondition Failed", b"<Error><Code>PreconditionFailed</Code></Error>"
            self.objects[key] = body
            self.puts.append(key)
            return "200 OK", b""
        if key not in self.objects:
            return "404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>"
        return "200 OK", self.objects[key]

    def client(self) -> Any:  # noqa: ANN401 - as boto3's
        """Return a boto3 client of this server."""
        keys: dict[str, Any] = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        config = Config(proxies={}, s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        return _SESSION.client("s3", endpoint_url=self.url, region_name="us-east-1", config=config, **keys)


@contextmanager
def served_s3() -> Iterator[MemoryS3]:
    """Serve S3 on a free port."""
    s3 = MemoryS3()
    with listening(s3) as url:
        s3.url = url
        yield s3
