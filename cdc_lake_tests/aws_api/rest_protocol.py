"""Services of AWS's REST-JSON protocol: botocore's model of the service finds the operation and checks the request."""

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

from infra.local.aws_api.errors import AwsError, unknown_operation
from infra.local.aws_api.server import Environ, StartResponse

Operation = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that takes the parameters of a request and returns the members of the response. It raises AwsError."""


class _InvalidError(Exception):
    """The parameters do not fit the model."""


@dataclass(frozen=True)
class _Route:
    method: str
    path: re.Pattern[str]
    model: OperationModel


class RestService:
    """A WSGI application that serves one AWS service: it calls one function for each operation."""

    def __init__(self, service: str, operations: Mapping[str, Operation], invalid: str = "BadRequestException") -> None:
        """`operations` maps names in botocore's model to functions; `invalid` is the code for invalid parameters."""
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
        body = json.dumps(answer, default=_iso8601).encode()
        start_response(
            f"{status} {'OK' if status == 200 else 'Error'}",
            [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers],
        )
        return [body]

    def _answer(self, environ: Environ) -> dict[str, Any]:
        # The path as the client sent it: PATH_INFO does not distinguish the slashes of an ARN from those of the path.
        path, _, query = str(environ.get("REQUEST_URI") or environ["PATH_INFO"]).partition("?")
        method = environ["REQUEST_METHOD"]
        for route in _routes(self._service):
            found = route.path.fullmatch(path) if route.method == method else None
            if found is not None:
                break
        else:
            raise unknown_operation(self._service, f"{method} {path}", self._operations)
        operation = self._operations.get(route.model.name)
        if operation is None:
            raise unknown_operation(self._service, route.model.name, self._operations)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        try:
            request = _request(route.model, found.groupdict(), parse_qs(query), body)
        except _InvalidError as error:
            raise AwsError(self._invalid, str(error)) from None
        return operation(request)


@cache
def _routes(service: str) -> list[_Route]:
    """Return the routes of all operations of a service. Cached, because reading a model takes up to half a second."""
    model = botocore.session.get_session().get_service_model(service)
    return [_route(model.operation_model(name)) for name in model.operation_names]


def _route(model: OperationModel) -> _Route:
    names = iter(re.findall(r"{(\w+)\+?}", model.http["requestUri"]))
    pattern = re.sub(r"{\w+\+?}", lambda _: f"(?P<{next(names)}>[^/]+)", model.http["requestUri"])
    return _Route(model.http["method"], re.compile(pattern), model)


def _request(
    model: OperationModel, path: Mapping[str, str], query: Mapping[str, list[str]], body: bytes
) -> dict[str, Any]:
    """Return the parameters of an operation, checked by its model. Raises _InvalidError."""
    shape = model.input_shape
    if not isinstance(shape, StructureShape):
        return {}
    try:
        members = json.loads(body) if body else {}
    except ValueError:
        raise _InvalidError("The request's body is not JSON.") from None
    found: dict[str, Any] = {}
    for name, member in shape.members.items():
        sent = member.serialization.get("name", name)
        match member.serialization.get("location"):
            case "uri":
                found[name] = _converted(unquote(path[sent]), member.type_name)
            case "querystring" if sent in query:
                values = query[sent]
                found[name] = values if member.type_name == "list" else _converted(values[0], member.type_name)
            case None if sent in members:
                found[name] = members[sent]
    report = ParamValidator().validate(found, shape)
    if report.has_errors():
        raise _InvalidError(" ".join(report.generate_report().split()))
    return found


def _converted(text: str, type_name: str) -> object:
    if type_name == "boolean":
        return text == "true"
    if type_name not in {"integer", "long"}:
        return text
    try:
        return int(text)
    except ValueError:
        raise _InvalidError(f"{text!r} is not a number.") from None


def _iso8601(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"Cannot write a {type(value).__name__} as JSON")
