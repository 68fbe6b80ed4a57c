"""Specs and reports of all jobs as JSON: nothing is lost, no secret is written, and errors name the field."""

from __future__ import annotations

import dataclasses
import json
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, get_args, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_lake.contract.errors import NotPortableError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.transforms import CastType, Masking, RecordKey, TableTransforms
from cdc_lake.contract.secret_fields import (
    REGISTRY_AUTHORIZATION,
    SOURCE_PASSWORD,
    HashSalt,
    OpenSettings,
    RegistryAuthorization,
    RoleKey,
    SourcePassword,
)
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.jobs import verify
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.landing.typed_rows import TypedLanding
from cdc_lake.jobs.poll import poll, reconcile
from cdc_lake.jobs.remote import job_call, spec_json

REFERENCE = "arn:aws:secretsmanager:us-east-1:123456789012:secret:source"
SECRETS = {SOURCE_PASSWORD: REFERENCE}
PASSWORD = "pa\u0000ss-word"

kafka = st.dictionaries(st.sampled_from(["bootstrap.servers", "security.protocol", "group.id"]), st.text())
names = st.text(min_size=1, max_size=10)
columns = st.builds(Column, name=names, type=st.just("text"), missing=st.none() | st.text())
schemas = st.builds(TableSchema, version=st.integers(1), table=names, columns=st.tuples(columns), key=st.tuples(names))
locations = st.builds(S3Location, access_key=st.just("AKIASECRET"), secret_key=st.just("S3SECRET"))
applying = st.builds(UpsertSpec, location=locations)
ranges = st.builds(verify.KafkaRange, kafka=kafka)
access = st.builds(verify.SourceAccess, password=st.just(PASSWORD))
bounds = st.builds(Bound, at=st.datetimes(timezones=st.just(UTC)), next_id_at=st.datetimes(timezones=st.just(UTC)))
texts = st.dictionaries(names, names, max_size=2)
keys = st.builds(RecordKey, fields=st.tuples(names))
casts: st.SearchStrategy[Mapping[str, CastType]] = st.dictionaries(names, st.sampled_from(get_args(CastType)))
transforms = st.builds(
    TableTransforms,
    masked=st.dictionaries(names, st.just(Masking(algorithm="SHA-256"))),
    renamed=texts,
    inserted=texts,
    cast=casts,
    key=keys,
)
SPECS: dict[str, st.SearchStrategy[Any]] = {
    "poll": st.builds(
        poll.PollSpec,
        access=access,
        schema=schemas,
        kafka=kafka,
        lower=st.none() | bounds,
        upper=bounds,
        transforms=st.none() | transforms,
        record_key=st.none() | keys,
    ),
    "reconcile": st.builds(
        reconcile.ReconcileSpec,
        access=access,
        location=locations,
        versions=st.lists(schemas, min_size=1, max_size=2),
        kafka=kafka,
        upper=bounds,
        transforms=transforms,
        record_key=keys,
    ),
    "land": st.builds(
        LandSpec,
        location=locations,
        kafka=kafka,
        transforms=st.none() | transforms,
        typed=st.builds(TypedLanding, partition_by=st.tuples(names)),
    ),
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
    """Return a strategy for the specs of a job."""
    kind = get_type_hints(job_call.JOBS[name])["spec"]
    return SPECS[name] if name in SPECS else st.builds(kind, table=applying)


def plain(value: object) -> object:
    """Return a value for comparison: sequences as lists, floats as text (NaN), and no keys of the role."""
    if isinstance(value, S3Location):
        value = dataclasses.replace(value, access_key=None, secret_key=None)
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("name", job_call.JOBS)
def test_a_spec_is_decoded_unchanged_and_without_secrets_in_its_text(name: str) -> None:
    @few
    @given(spec_of(name))
    def check(spec: object) -> None:
        text = job_call.JobTexts().request(job_call.JOBS[name], spec, SECRETS)
        assert not [secret for secret in ("AKIASECRET", "S3SECRET", "ss-word") if secret in text]
        found = job_call.spec_of(job_call.JOBS[name], text, {REFERENCE: PASSWORD}.__getitem__)
        assert type(found) is type(spec)
        assert plain(found) == plain(spec)

    check()


@pytest.mark.parametrize("name", job_call.JOBS)
def test_a_report_is_decoded_unchanged(name: str) -> None:
    job = job_call.JOBS[name]

    @few
    @given(st.from_type(get_type_hints(job)["return"]))
    def check_report(report: object) -> None:
        texts = job_call.JobTexts()
        text = job_call.report_text(report)
        assert plain(texts.report(job, text)) == plain(report)
        assert texts.error(text) is None

    check_report()


class Colour(StrEnum):
    """An enum in a spec."""

    RED = "red"


@dataclasses.dataclass(frozen=True)
class Part:
    """A nested dataclass."""

    when: datetime
    colour: Colour = Colour.RED
    side: Literal["left", "right"] = "left"
    pairs: Mapping[int, tuple[str, int | None]] = dataclasses.field(default_factory=dict)
    numbers: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True)
class Whole:
    """A spec with nested dataclasses."""

    parts: tuple[Part, ...]


def test_nested_dataclasses_are_decoded_unchanged() -> None:
    spec = Whole((Part(datetime(2026, 1, 2, tzinfo=UTC), pairs={7: ("a", None)}, numbers=frozenset({3, 1})),))
    assert spec_json.decode(Whole, json.loads(json.dumps(spec_json.encode(spec)))) == spec


def odd_object(**members: tuple[Any, Any]) -> object:
    """Return an object of a dataclass Odd with these members, given as type and value."""
    kind = dataclasses.make_dataclass("Odd", [(name, hint) for name, (hint, _) in members.items()], frozen=True)
    return kind(**{name: value for name, (_, value) in members.items()})


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (odd_object(check=(type(len), len)), "Odd as JSON: .*builtin_function_or_method"),
        (odd_object(lock=(threading.Event, threading.Event())), r"Odd as JSON: .*threading\.Event"),
        (odd_object(many=(list[int], [1, "2"])), r"many\.1: Input should be a valid integer"),
        (odd_object(text=(str, object())), "Odd as JSON: 'object' object is not iterable"),
        (odd_object(text=(str, 5)), "text: Input should be a valid string"),
        (odd_object(number=(int, 1.5)), "number: Input should be a valid integer"),
        (odd_object(pair=(tuple[int, int], (1,))), r"pair\.1: Field required"),
        (odd_object(part=(Whole, Whole((Part("today"),)))), r"part\.parts\.0\.when: "),  # type: ignore[arg-type]
    ],
)
def test_a_field_that_cannot_be_encoded_is_named(odd: object, message: str) -> None:
    with pytest.raises(NotPortableError, match=message):
        spec_json.encode(odd)


def dataclasses_in(hint: Any) -> Iterator[type]:  # noqa: ANN401 - hints have no common type
    """Yield the dataclasses in a type hint, at any depth."""
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        yield hint
    inner = get_type_hints(hint).values() if dataclasses.is_dataclass(hint) else get_args(hint)
    for each in inner:
        yield from dataclasses_in(each)


@pytest.mark.parametrize("name", job_call.JOBS)
def test_fields_without_repr_have_a_secret_type(name: str) -> None:
    for kind in dataclasses_in(get_type_hints(job_call.JOBS[name])["spec"]):
        hints = get_type_hints(kind, include_extras=True)
        hidden = [hints[field.name] for field in dataclasses.fields(kind) if not field.repr]
        assert all(hint in (RoleKey, SourcePassword, RegistryAuthorization, HashSalt) for hint in hidden), kind


def test_a_secret_is_encoded_only_as_a_reference() -> None:
    access = verify.SourceAccess("h", 1, "d", "u", PASSWORD)
    with pytest.raises(NotPortableError, match=r"password: .*there is no reference to the secret 'source-password'"):
        spec_json.encode(access)
    assert spec_json.encode(access, SECRETS)["password"] == {"secret": REFERENCE}


def test_a_registry_needs_a_reference_only_for_a_header() -> None:
    public = RegistryLocation("http://registry")
    assert spec_json.decode(RegistryLocation, spec_json.encode(public)) == public
    private = RegistryLocation("http://registry", "Bearer x")
    with pytest.raises(NotPortableError, match="there is no reference to the secret 'registry-authorization'"):
        spec_json.encode(private)
    written = spec_json.encode(private, {REGISTRY_AUTHORIZATION: REFERENCE})
    assert written["authorization"] == {"secret": REFERENCE}
    assert spec_json.decode(RegistryLocation, written, {REFERENCE: "Bearer x"}.__getitem__) == private


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ssl.keystore.password", "sasl.client.Secret"])
def test_settings_that_may_contain_a_secret_are_not_encoded(name: str) -> None:
    odd = odd_object(kafka=(OpenSettings, {name: "x"}))
    with pytest.raises(NotPortableError, match=f"kafka: .*'{name}' may hold a secret"):
        spec_json.encode(odd)


@pytest.mark.parametrize("changes", [{"more": 1}, {"table": None}, {"location": {}}, {"key": ["a", 5]}])
def test_json_of_another_version_is_rejected(changes: dict[str, Any]) -> None:
    spec = UpsertSpec(S3Location("b"), "shop", "t", "s.t", "t", ["id"])
    [field] = changes
    with pytest.raises(NotPortableError, match=f"Cannot read UpsertSpec as JSON: {field}"):
        spec_json.decode(UpsertSpec, {**spec_json.encode(spec), **changes})


def test_a_plain_text_secret_is_rejected_and_not_shown() -> None:
    access = {"host": "h", "port": 1, "database": "d", "user": "u", "password": "in clear"}
    with pytest.raises(NotPortableError, match="not a reference to a secret") as found:
        spec_json.decode(verify.SourceAccess, access)
    assert "in clear" not in "".join(traceback.format_exception(found.value))
