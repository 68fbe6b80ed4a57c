"""Services of AWS's JSON protocol: one address, the operation named by a header, checked by botocore's own model.

Here: operation and parameters of a request, and the answer's JSON. Not here: what an operation does (emr.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import botocore.session
from botocore.model import StructureShape
from botocore.validate import ParamValidator

from infra.local.aws_endpoint.errors import JSON, AwsError, unknown_operation
from infra.local.aws_endpoint.gate import Environ, StartResponse

Operation = Callable[[dict[str, Any]], dict[str, Any]]


class JsonRpc:
    """A WSGI application that answers one service by functions of its operations' parameters."""

    def __init__(self, service: str, operations: Mapping[str, Operation]) -> None:
        self._service = service
        self._operations = operations
        self._model = botocore.session.get_session().get_service_model(service)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request. Times in answers are seconds since the epoch, as the protocol has them."""
        try:
            status, code, body = 200, "OK", json.dumps(self._answer(environ)).encode()
        except AwsError as error:
            status, code, body = error.status, error.code, error.as_json().encode()
        start_response(f"{status} {code}", [("Content-Type", JSON), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, environ: Environ) -> dict[str, Any]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        name = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        operation = self._operations.get(name)
        if operation is None:
            raise unknown_operation(self._service, name or "(none)", frozenset(self._operations))
        try:
            told = json.loads(body) if body else {}
        except ValueError:
            raise AwsError("SerializationException", "The request's body is no JSON.") from None
        shape = self._model.operation_model(name).input_shape
        if isinstance(shape, StructureShape):
            report = ParamValidator().validate(told, shape)
            if report.has_errors():
                raise AwsError("ValidationException", " ".join(report.generate_report().split()))
        return operation(told)
