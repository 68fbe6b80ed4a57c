"""Every job's spec and report as JSON and back: nothing is lost, no secret is written, what can't travel is named."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_lake.contract.schema import Column, TableSchema
from cdc_lake.contract.store import S3Location
from cdc_lake.contract.withheld import KEY, SOURCE_PASSWORD, WITHOUT_SECRETS
from cdc_lake.jobs import land, remote, upsert, verify, wire

REFERENCE = "arn:aws:secretsmanager:us-east-1:123456789012:secret:source"
SECRETS = {SOURCE_PASSWORD: REFERENCE}
PASSWORD = "pa\u0000ss-word"

kafka = st.dictionaries(st.sampled_from(["bootstrap.servers", "security.protocol", "group.id"]), st.text())
names = st.text(min_size=1, max_size=10)
columns = st.builds(Column, name=names, type=st.just("text"), missing=st.none() | st.text())
schemas = st.builds(TableSchema, version=st.integers(1), table=names, columns=st.tuples(columns), key=st.tuples(names))
locations = st.builds(S3Location, access_key=st.just("AKIASECRET"), secret_key=st.just("S3SECRET"))
applying = st.builds(upsert.UpsertSpec, location=locations)
ranges = st.builds(verify.KafkaRange, kafka=kafka)
access = st.builds(verify.SourceAccess, password=st.just(PASSWORD))
SPECS: dict[str, st.SearchStrategy[Any]] = {
    "land": st.builds(land.LandSpec, location=locations, kafka=kafka),
    "upsert": applying,
    "verify": st.builds(
        verify.VerifySpec,
        location=locations,
        versions=st.lists(schemas, min_size=1, max_size=2),
        source=st.builds(verify.SourceTable, access=access),
        later=st.none() | ranges,
    ),
}
few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def spec_of(name: str) -> st.SearchStrategy[Any]:
    """Specs of a job."""
    kind = get_type_hints(remote.JOBS[name])["spec"]
    return SPECS[name] if name in SPECS else st.builds(kind, table=applying)


def plain(value: object) -> object:
    """A value whose equality is by content: any sequence is one, NaN is itself, and the role's keys are left out."""
    if isinstance(value, S3Location):
        value = dataclasses.replace(value, access_key=None, secret_key=None)
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("name", remote.JOBS)
def test_a_spec_arrives_as_it_was(name: str) -> None:
    @few
    @given(spec_of(name))
    def arrives(spec: object) -> None:
        text = remote.JobTexts().request(remote.JOBS[name], spec, SECRETS)
        assert not [secret for secret in ("AKIASECRET", "S3SECRET", "ss-word") if secret in text]
        found = remote.spec_of(remote.JOBS[name], text, {REFERENCE: PASSWORD}.__getitem__)
        assert type(found) is type(spec)
        assert plain(found) == plain(spec)

    arrives()


@pytest.mark.parametrize("name", remote.JOBS)
def test_a_report_comes_back_as_it_was(name: str) -> None:
    job = remote.JOBS[name]

    @few
    @given(st.from_type(get_type_hints(job)["return"]))
    def comes_back(report: object) -> None:
        texts = remote.JobTexts()
        text = remote.report_text(report)
        assert plain(texts.report(job, text)) == plain(report)
        assert texts.error(text) is None

    comes_back()


class Colour(StrEnum):
    """An enum."""

    RED = "red"


@dataclasses.dataclass(frozen=True)
class Part:
    """What a Whole has."""

    when: datetime
    colour: Colour = Colour.RED
    side: Literal["left", "right"] = "left"
    pairs: Mapping[int, tuple[str, int | None]] = dataclasses.field(default_factory=dict)
    numbers: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True)
class Whole:
    """A spec of parts."""

    parts: Sequence[Part]


def test_parts_of_parts() -> None:
    whole = Whole((Part(datetime(2026, 1, 2, tzinfo=UTC), pairs={7: ("a", None)}, numbers=frozenset({3, 1})),))
    assert wire.decode(Whole, json.loads(json.dumps(wire.encode(whole)))) == whole


def made(**members: tuple[Any, Any]) -> object:
    """An object of a dataclass Odd with these members, each a type and a value."""
    kind = dataclasses.make_dataclass("Odd", [(name, hint) for name, (hint, _) in members.items()], frozen=True)
    return kind(**{name: value for name, (_, value) in members.items()})


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (made(check=(type(len), len)), r"Odd\.check is told to be builtin_function_or_method, which can't travel"),
        (made(lock=(threading.Event, threading.Event())), r"Odd\.lock is told to be Event"),
        (made(either=(int | str, 1)), r"Odd\.either is told to be int \| str"),
        (made(by=(dict[float, str], {1.0: "a"})), r"Odd\.by is told to be dict\[float, str\]"),
        (made(many=(list[int], [1, "2"])), r"Odd\.many\[1\] can't travel: it is told to be int, and is str"),
        (made(text=(str, 5)), r"Odd\.text can't travel: it is told to be str, and is int"),
        (made(number=(int, True)), r"Odd\.number can't travel"),
        (made(pair=(tuple[int, int], (1,))), r"Odd\.pair has 1 items, and 2 are told of"),
        (made(part=(Whole, Whole([Part("today")]))), r"Odd\.part\.parts\[0\]\.when can't travel"),  # type: ignore[arg-type]
    ],
)
def test_what_can_t_travel_is_named(odd: object, said: str) -> None:
    with pytest.raises(wire.NotPortableError, match=said):
        wire.encode(odd)


def hidden(mark: Mapping[str, str]) -> object:
    """An object of a dataclass with a hidden member."""
    field = dataclasses.field(repr=False, metadata=mark)
    return dataclasses.make_dataclass("Odd", [("key", str, field)], frozen=True)("secret")


def test_a_hidden_field_is_not_written_unless_it_says_who_has_it() -> None:
    with pytest.raises(wire.NotPortableError, match=r"Odd\.key is hidden from texts"):
        wire.encode(hidden({}))
    with pytest.raises(wire.NotPortableError, match=r"Odd\.key is a secret, and no reference to 'token' is given"):
        wire.encode(hidden({KEY: "token"}))
    assert wire.encode(hidden({KEY: "token"}), {"token": "at"}) == {"key": {"secret": "at"}}


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ssl.keystore.password", "sasl.client.Secret"])
def test_settings_with_a_secret_are_not_written(name: str) -> None:
    field = dataclasses.field(metadata=WITHOUT_SECRETS)
    odd = dataclasses.make_dataclass("Odd", [("kafka", Mapping[str, str], field)])({name: "x"})
    with pytest.raises(wire.NotPortableError, match=rf"Odd\.kafka has '{name}'"):
        wire.encode(odd)


@pytest.mark.parametrize("changes", [{"more": 1}, {"table": None}, {"location": {}}, {"key": ["a", 5]}])
def test_what_other_code_wrote_is_not_read(changes: dict[str, Any]) -> None:
    spec = upsert.UpsertSpec(S3Location("b"), "shop", "t", "s.t", "t", ["id"])
    with pytest.raises(wire.NotPortableError, match="UpsertSpec"):
        wire.decode(upsert.UpsertSpec, {**wire.encode(spec), **changes})
    with pytest.raises(wire.NotPortableError, match="secret"):
        wire.decode(verify.SourceAccess, {**_ACCESS, "password": "in clear"})


_ACCESS = {"host": "h", "port": 1, "database": "d", "user": "u", "connect_timeout_seconds": 1}
