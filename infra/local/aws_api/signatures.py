"""Verifies that a request is signed with the stack's keys (AWS Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
import io
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from werkzeug.wsgi import get_content_length

_MAX_BODY_BYTES = 16 * 2**20
_MAX_AGE = timedelta(minutes=15)  # AWS allows 5 to 15 minutes, depending on the service
_DATE = "%Y%m%dT%H%M%SZ"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)/aws4_request,"
    r"\s*SignedHeaders=(?P<headers>[^,\s]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)


@dataclass(frozen=True)
class SigningKeys:
    """The key pair that requests must be signed with."""

    access_key: str
    secret_key: str = field(repr=False)

    def signed(self, environ: dict[str, Any]) -> bool:
        """Return whether the request, its body included, was signed with the keys in the last 15 minutes.

        The body can be read again afterwards. Bodies above 16 MiB are not accepted.
        """
        found = _AUTHORIZATION.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
        length = get_content_length(environ) or 0
        if found is None or found["key"] != self.access_key or length > _MAX_BODY_BYTES:
            return False
        headers = {name: _header(environ, name) for name in found["headers"].split(";")}
        if not {"host", "x-amz-date"} <= headers.keys() or not _is_recent(headers["x-amz-date"]):
            return False
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        digest = hashlib.sha256(body).hexdigest()
        if headers.get("x-amz-content-sha256", digest) != digest:
            return False
        path = str(environ.get("REQUEST_URI") or environ["PATH_INFO"])
        request = AWSRequest(environ["REQUEST_METHOD"], f"http://{headers['host']}{path}", headers, body)
        request.context["timestamp"] = headers["x-amz-date"]
        auth = SigV4Auth(Credentials(self.access_key, self.secret_key), found["service"], found["region"])
        expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        return hmac.compare_digest(expected, found["signature"])


def _is_recent(date: str) -> bool:
    try:
        signed = datetime.strptime(date, _DATE).replace(tzinfo=UTC)
    except ValueError:
        return False
    return abs(_now() - signed) <= _MAX_AGE


def _now() -> datetime:
    return datetime.now(UTC)


def _header(environ: dict[str, Any], name: str) -> str:
    key = name.upper().replace("-", "_")
    return str(environ.get(key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}", ""))
