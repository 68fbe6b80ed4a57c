"""Services of AWS's JSON protocol: a header names the operation, and botocore's model checks the request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import botocore.session
from botocore.model import StructureShape
from botocore.validate import ParamValidator

from infra.local.aws_api.errors import JSON, AwsError, unknown_operation
from infra.local.aws_api.server import Environ, StartResponse

Operation = Callable[[dict[str, Any]], dict[str, Any]]
"""Maps the parameters of a request to the members of the answer. Raises AwsError."""


class JsonService:
    """A WSGI application that serves the operations of one AWS service."""

    def __init__(self, service: str, operations: Mapping[str, Operation]) -> None:
        """`service` is the name of a botocore service model; `operations` maps operation names of that model."""
        self._service = service
        self._operations = operations
        self._model = botocore.session.get_session().get_service_model(service)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request. Times in answers are seconds since the epoch, as the protocol requires."""
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
            raise unknown_operation(self._service, name or "(none)", self._operations)
        try:
            request = json.loads(body) if body else {}
        except ValueError:
            raise AwsError("SerializationException", "The request's body is not JSON.") from None
        shape = self._model.operation_model(name).input_shape
        if isinstance(shape, StructureShape):
            report = ParamValidator().validate(request, shape)
            if report.has_errors():
                raise AwsError("ValidationException", " ".join(report.generate_report().split()))
        return operation(request)
