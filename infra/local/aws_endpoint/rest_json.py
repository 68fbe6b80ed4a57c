"""Services of AWS's REST-JSON protocol: a request is matched and checked by botocore's own model of the service.

Here: which operation a method and path are, its parameters from path, query and body, and the answer's JSON. Not here:
what an operation does (kafkaconnect.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

import botocore.session
from botocore.model import OperationModel, StructureShape
from botocore.validate import ParamValidator

from infra.local.aws_endpoint.errors import AwsError, unknown_operation
from infra.local.aws_endpoint.gate import Environ, StartResponse

Operation = Callable[[dict[str, Any]], dict[str, Any]]
_JSON = "application/json"


class _InvalidError(Exception):
    """The parameters are not what the model says."""


@dataclass(frozen=True)
class _Route:
    method: str
    path: re.Pattern[str]
    model: OperationModel


class RestJson:
    """A WSGI application that answers one service by functions of its operations' parameters."""

    def __init__(self, service: str, operations: Mapping[str, Operation], invalid: str = "BadRequestException") -> None:
        """Take the operations by their names, and the code that the service has for parameters that are none."""
        self._service = service
        self._invalid = invalid
        self._operations = operations

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        try:
            status, headers, answer = 200, [], self._answer(environ)
        except AwsError as error:
            status, headers = error.status, [("x-amzn-ErrorType", error.code)]
            answer = {"message": error.message, **error.members}
        body = json.dumps(answer, default=_spelled).encode()
        start_response(
            f"{status} {'OK' if status == 200 else 'Error'}",
            [("Content-Type", _JSON), ("Content-Length", str(len(body))), *headers],
        )
        return [body]

    def _answer(self, environ: Environ) -> dict[str, Any]:
        # As the client sent it: in PATH_INFO an ARN's slashes can't be told from the path's own.
        path, _, query = str(environ.get("REQUEST_URI") or environ["PATH_INFO"]).partition("?")
        method = environ["REQUEST_METHOD"]
        for route in _routes(self._service):
            found = route.path.fullmatch(path) if route.method == method else None
            if found is not None:
                break
        else:
            raise unknown_operation(self._service, f"{method} {path}", frozenset(self._operations))
        operation = self._operations.get(route.model.name)
        if operation is None:
            raise unknown_operation(self._service, route.model.name, frozenset(self._operations))
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        try:
            return operation(_parameters(route.model, found.groupdict(), parse_qs(query), body))
        except _InvalidError as error:
            raise AwsError(self._invalid, str(error)) from None


@cache
def _routes(service: str) -> list[_Route]:
    """All operations of a service, offered or not. Some models take half a second to read: at the first request."""
    model = botocore.session.get_session().get_service_model(service)
    return [_route(model.operation_model(name)) for name in model.operation_names]


def _route(model: OperationModel) -> _Route:
    names = iter(re.findall(r"{(\w+)\+?}", model.http["requestUri"]))
    pattern = re.sub(r"{\w+\+?}", lambda _: f"(?P<{next(names)}>[^/]+)", model.http["requestUri"])
    return _Route(model.http["method"], re.compile(pattern), model)


def _parameters(
    model: OperationModel, path: Mapping[str, str], query: Mapping[str, list[str]], body: bytes
) -> dict[str, Any]:
    """The parameters as boto3's caller gave them, checked. Raises _InvalidError."""
    shape = model.input_shape
    if not isinstance(shape, StructureShape):
        return {}
    try:
        told = json.loads(body) if body else {}
    except ValueError:
        raise _InvalidError("The request's body is no JSON.") from None
    found: dict[str, Any] = {}
    for name, member in shape.members.items():
        wire = member.serialization.get("name", name)
        match member.serialization.get("location"):
            case "uri":
                found[name] = _typed(unquote(path[wire]), member.type_name)
            case "querystring" if wire in query:
                values = query[wire]
                found[name] = _typed(values[0], member.type_name) if member.type_name != "list" else values
            case None if wire in told:
                found[name] = told[wire]
    report = ParamValidator().validate(found, shape)
    if report.has_errors():
        raise _InvalidError(" ".join(report.generate_report().split()))
    return found


def _typed(text: str, kind: str) -> object:
    if kind == "boolean":
        return text == "true"
    if kind not in {"integer", "long"}:
        return text
    try:
        return int(text)
    except ValueError:
        raise _InvalidError(f"{text!r} is no number.") from None


def _spelled(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON")
