"""Specs and reports as JSON, by the type hints of their dataclasses: how they travel to a job on another machine.

Here: values to JSON and back. A secret is no value: it is left out or written as a reference (contract/withheld.py).
Not here: which job, and errors (remote.py).
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from cdc_lake.contract import withheld
from cdc_lake.contract.errors import ContractError

T = TypeVar("T")
Json = Any

_PLAIN = (bool, int, float, str)
_LISTS = (Sequence, list, tuple, frozenset, set)
_SECRET = "secret"  # noqa: S105 - the name of a member
_TELLING = re.compile(r"password|secret|jaas|credential|passphrase|private", re.IGNORECASE)


class NotPortableError(ContractError):
    """A field has a type, or a value, that can't travel as JSON."""


def encode(value: object, secrets: Mapping[str, str] | None = None) -> Json:
    """A dataclass as what json.dumps() takes; `secrets` are references to the secrets that it holds, by name.

    Raises NotPortableError, which names the field.
    """
    return _Encoder(secrets or {}).encode(type(value), value, type(value).__name__)


def decode(kind: type[T], value: Json, resolve: Callable[[str], str] | None = None) -> T:
    """The dataclass `kind` of what encode() made; `resolve` looks a secret up by its reference.

    Raises NotPortableError, which names the field, for what encode() did not make, and what `resolve` raises.
    """
    found: T = _Decoder(resolve or _no_secrets).decode(kind, value, kind.__name__)
    return found


def _no_secrets(reference: str) -> str:
    raise NotPortableError(f"the secret {reference} can't be looked up here: nobody said where secrets are kept")


@dataclasses.dataclass(frozen=True)
class _Encoder:
    secrets: Mapping[str, str]

    def encode(self, hint: Any, value: Any, at: str) -> Json:  # noqa: ANN401, PLR0911 - hints have no common type
        if _is_dataclass(hint):
            _require(type(value) is hint, hint, value, at)
            members = dataclasses.fields(hint)
            hints = get_type_hints(hint)
            return {f.name: self._member(f, hints[f.name], getattr(value, f.name), f"{at}.{f.name}") for f in members}
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            _require(type(value) is hint, hint, value, at)
            return value.model_dump(mode="json")
        if _is_union(hint):
            return None if value is None else self.encode(_optional(hint, at), value, at)
        if get_origin(hint) is Literal:
            _require(value in get_args(hint), hint, value, at)
            return value
        if isinstance(hint, type) and issubclass(hint, Enum):
            _require(isinstance(value, hint), hint, value, at)
            return value.value
        if hint is datetime:
            _require(isinstance(value, datetime), hint, value, at)
            return value.isoformat()
        if hint in _PLAIN:
            # True is an int to Python, and 1 a float to whoever wrote a number.
            number = hint is float and isinstance(value, int)
            right = (isinstance(value, hint) or number) and isinstance(value, bool) == (hint is bool)
            _require(right, hint, value, at)
            return hint(value)
        return self._container(hint, value, at)

    def _container(self, hint: Any, value: Any, at: str) -> Json:  # noqa: ANN401
        origin = get_origin(hint)
        if origin in _LISTS:
            _require(isinstance(value, _LISTS) and not isinstance(value, str), hint, value, at)
            items = sorted(value) if origin in (frozenset, set) else list(value)
            kinds = _item_hints(hint, len(items), at)
            return [
                self.encode(kind, item, f"{at}[{n}]") for n, (kind, item) in enumerate(zip(kinds, items, strict=True))
            ]
        if origin in (Mapping, dict):
            _require(isinstance(value, Mapping), hint, value, at)
            key, kind = _key_and_item(hint, at)
            _require(all(type(name) is key for name in value), hint, value, at)
            return {str(name): self.encode(kind, item, f"{at}[{name!r}]") for name, item in value.items()}
        raise _unportable(hint, at)

    def _member(self, member: dataclasses.Field[Any], hint: Any, value: Any, at: str) -> Json:  # noqa: ANN401
        mark = member.metadata.get(withheld.KEY)
        if mark is None and not member.repr:
            raise NotPortableError(
                f"{at} is hidden from texts, so it may be a secret: say in its metadata who has it where the job runs "
                "(cdc_lake/contract/withheld.py)"
            )
        if mark == withheld.ROLE:
            _optional(hint, at)
            return None
        if mark == withheld.PLAIN:
            for name in value:
                if _TELLING.search(name):
                    raise NotPortableError(
                        f"{at} has {name!r}, which may hold a secret: give it to Spark as a setting of the cluster"
                    )
        elif mark is not None and value is not None:
            if mark not in self.secrets:
                raise NotPortableError(
                    f"{at} is a secret, and no reference to {mark!r} is given: keep it in Secrets Manager and name it "
                    "in the resource that starts jobs"
                )
            return {_SECRET: self.secrets[mark]}
        return self.encode(hint, value, at)


@dataclasses.dataclass(frozen=True)
class _Decoder:
    resolve: Callable[[str], str]

    def decode(self, hint: Any, value: Json, at: str) -> Any:  # noqa: ANN401, PLR0911 - hints have no common type
        if _is_dataclass(hint):
            return self._dataclass(hint, value, at)
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            try:
                return hint.model_validate(value)
            except ValidationError as error:
                raise NotPortableError(f"{at} is no {hint.__name__}: {' '.join(str(error).split())}") from error
        if _is_union(hint):
            return None if value is None else self.decode(_optional(hint, at), value, at)
        if get_origin(hint) is Literal:
            _require(value in get_args(hint), hint, value, at)
            return value
        if isinstance(hint, type) and issubclass(hint, Enum):
            _require(value in [each.value for each in hint], hint, value, at)
            return hint(value)
        if hint is datetime:
            _require(isinstance(value, str), hint, value, at)
            return datetime.fromisoformat(value)
        if hint in _PLAIN:
            _require(type(value) is hint, hint, value, at)
            return value
        return self._container(hint, value, at)

    def _container(self, hint: Any, value: Json, at: str) -> Any:  # noqa: ANN401
        origin = get_origin(hint)
        if origin in _LISTS:
            _require(isinstance(value, list), hint, value, at)
            kinds = _item_hints(hint, len(value), at)
            items = (
                self.decode(kind, item, f"{at}[{n}]") for n, (kind, item) in enumerate(zip(kinds, value, strict=True))
            )
            return {frozenset: frozenset, set: set, list: list}.get(origin, tuple)(items)
        if origin in (Mapping, dict):
            _require(isinstance(value, dict), hint, value, at)
            key, kind = _key_and_item(hint, at)
            return {key(name): self.decode(kind, item, f"{at}[{name!r}]") for name, item in value.items()}
        raise _unportable(hint, at)

    def _dataclass(self, kind: type, value: Json, at: str) -> Any:  # noqa: ANN401
        _require(isinstance(value, dict), kind, value, at)
        hints = get_type_hints(kind)
        names = {member.name for member in dataclasses.fields(kind)}
        if differ := names ^ value.keys():
            raise NotPortableError(
                f"{at} was written by other code: {', '.join(sorted(differ))} is in one and not in the other"
            )
        return kind(
            **{
                f.name: self._member(f, hints[f.name], value[f.name], f"{at}.{f.name}")
                for f in dataclasses.fields(kind)
            }
        )

    def _member(self, member: dataclasses.Field[Any], hint: Any, value: Json, at: str) -> Any:  # noqa: ANN401
        mark = member.metadata.get(withheld.KEY)
        if mark not in (None, withheld.ROLE, withheld.PLAIN) and value is not None:
            _require(isinstance(value, dict) and list(value) == [_SECRET], "reference to a secret", "what is not", at)
            return self.resolve(value[_SECRET])
        return self.decode(hint, value, at)


def _is_dataclass(hint: Any) -> bool:  # noqa: ANN401
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _is_union(hint: Any) -> bool:  # noqa: ANN401
    return get_origin(hint) in (Union, types.UnionType)


def _optional(hint: Any, at: str) -> Any:  # noqa: ANN401
    """What a hint like `T | None` has beside None."""
    there = [each for each in get_args(hint) if each is not types.NoneType]
    if not _is_union(hint) or len(there) != 1 or len(get_args(hint)) != 2:
        raise _unportable(hint, at)
    return there[0]


def _item_hints(hint: Any, count: int, at: str) -> Sequence[Any]:  # noqa: ANN401
    told = get_args(hint)
    if get_origin(hint) is not tuple:
        return [told[0]] * count
    if len(told) == 2 and told[1] is Ellipsis:
        return [told[0]] * count
    if len(told) != count:
        raise NotPortableError(f"{at} has {count} items, and {len(told)} are told of: {hint}")
    return told


def _key_and_item(hint: Any, at: str) -> tuple[Callable[[str], Any], Any]:  # noqa: ANN401
    key, item = get_args(hint)
    if key not in (str, int):  # JSON's names are texts
        raise _unportable(hint, at)
    return key, item


def _require(right: bool, hint: Any, value: Any, at: str) -> None:  # noqa: ANN401
    if not right:
        told = hint if isinstance(hint, str) else getattr(hint, "__name__", hint)
        raise NotPortableError(f"{at} can't travel: it is told to be {told}, and is {type(value).__name__}")


def _unportable(hint: Any, at: str) -> NotPortableError:  # noqa: ANN401
    told = getattr(hint, "__name__", None) if get_args(hint) == () else None
    return NotPortableError(f"{at} is told to be {told or hint}, which can't travel as JSON: give it a plain form")
