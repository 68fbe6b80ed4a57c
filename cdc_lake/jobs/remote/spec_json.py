"""Convert specs and reports of jobs to and from JSON, by the type hints of their dataclasses.

A secret is left out or written as a reference (contract/secret_fields.py). The names of jobs and their errors are in
job_call.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from cdc_lake.contract.errors import NotPortableError
from cdc_lake.contract.secret_fields import Secrets

T = TypeVar("T")
Json = Any


def encode(value: object, secrets: Mapping[str, str] | None = None) -> Json:
    """Return `value` as an object for json.dumps(); `secrets` are references to the secrets in `value`, by name.

    Raises NotPortableError, which names the field, for what decode() could not read.
    """
    context = Secrets(secrets or {}, look_up=str)
    kind = type(value)
    try:  # `fallback` is for mappings that are not dicts
        [written] = _adapter(kind).dump_python((value,), mode="json", context=context, warnings=False, fallback=dict)
    except TypeError as error:
        raise NotPortableError(f"Cannot write {kind.__name__} as JSON: {error}") from error
    _read(kind, written, context, "write")
    return written


def decode(kind: type[T], value: Json, look_up: Callable[[str], str] | None = None) -> T:
    """Return the dataclass `kind` that encode() wrote; `look_up` returns the secret of a reference.

    Raises NotPortableError, which names the field, for what encode() did not write, and what `look_up` raises.
    """
    return _read(kind, value, Secrets({}, look_up or _no_secrets), "read")


def _read(kind: type[T], value: Json, context: Secrets, action: str) -> T:
    try:
        [found] = _adapter(kind).validate_json(json.dumps([value]), strict=True, context=context)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        causes = "; ".join(f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}" for fault in faults)
        raise NotPortableError(f"Cannot {action} {kind.__name__} as JSON: {causes}") from error
    return found  # type: ignore[no-any-return]


def _adapter(kind: type) -> TypeAdapter[Any]:
    # The type is wrapped in a tuple, because a dataclass uses the configuration of the type that contains it.
    config = ConfigDict(extra="forbid", ser_json_inf_nan="constants", hide_input_in_errors=True)
    try:
        return TypeAdapter(tuple[kind], config=config)  # type: ignore[valid-type]
    except PydanticSchemaGenerationError as error:
        raise NotPortableError(f"Cannot write {kind.__name__} as JSON: {error.message}") from error


def _no_secrets(reference: str) -> str:
    raise NotPortableError(f"Cannot look up the secret {reference}: no function to look up secrets was given.")
