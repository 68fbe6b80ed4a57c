"""Whether a request was signed with the stack's keys (Signature Version 4).

Here: the check, for services that tell a secret. Not here: which those are (gate.py). Everything else that the endpoint
serves, any user of this machine can read in another way.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import re
from dataclasses import dataclass, field
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

_LARGEST = 2**20
_PARTS = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request,"
    r"\s*SignedHeaders=(?P<headers>[^,\s]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)


@dataclass(frozen=True)
class Signatures:
    """The one pair of keys that signs here."""

    access_key: str
    secret_key: str = field(repr=False)

    def holds(self, environ: dict[str, Any]) -> bool:
        """Whether the request is signed with the keys, its body included; it can still be read afterwards."""
        told = _PARTS.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if told is None or told["key"] != self.access_key or length > _LARGEST:
            return False
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        headers = {name: _header(environ, name) for name in told["headers"].split(";")}
        if not {"host", "x-amz-date"} <= headers.keys():
            return False
        if headers.get("x-amz-content-sha256", hashlib.sha256(body).hexdigest()) != hashlib.sha256(body).hexdigest():
            return False
        path = str(environ.get("REQUEST_URI") or environ["PATH_INFO"])
        request = AWSRequest(environ["REQUEST_METHOD"], f"http://{headers['host']}{path}", headers, body)
        request.context["timestamp"] = headers["x-amz-date"]
        auth = SigV4Auth(Credentials(self.access_key, self.secret_key), told["service"], told["region"])
        signed = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        return hmac.compare_digest(signed, told["signature"])


def _header(environ: dict[str, Any], name: str) -> str:
    plain = name.upper().replace("-", "_")
    return str(environ.get(plain if plain in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{plain}", ""))
