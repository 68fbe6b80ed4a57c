"""Errors of AWS: each resource reports the operation, the object, the cause and the remedy.

Every resource calls a server that refuses all requests; a resource that is missing here fails a test.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ParamValidationError, ProfileNotFound, UnauthorizedSSOTokenError

import resources
from cdc_lake_tests.aws_api.quicksight.in_memory import SESSION
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT
from cdc_lake_tests.fakes.server import listening
from cdc_lake_tests.fakes.source.kafka import FakeKafka
from resources.athena import Athena
from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.aws.identity import Sts
from resources.aws.metrics import UNLANDED, CloudWatchMetrics
from resources.aws.secrets import DatabaseSecret
from resources.aws.sqs import Sqs
from resources.errors import AccessRefused, ResourceError, Unreachable
from resources.glue.catalog import GlueCatalog
from resources.kafka.msk import Msk
from resources.msk_connect.connector_request import ConnectSettings
from resources.msk_connect.plugins import MskPlugins
from resources.msk_connect.resource import MskConnect
from resources.object_store import ObjectStore
from resources.quicksight.resource import QuickSight
from resources.spark.emr.cluster_steps import EmrSteps
from resources.spark.emr.job_files import JobFiles
from resources.spark.emr.serverless import EmrServerlessSpark

CLUSTER = f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/lake/1"
SECRET = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:source"
QUEUE = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/events"
SETTINGS = ConnectSettings(
    subnets=["subnet-1"],
    security_groups=["sg-1"],
    role_arn="arn:role",
    plugins=[],
    worker_configurations={},
    log_group="/logs",
)
ELSEWHERE = {EmrSteps, EmrServerlessSpark, ObjectStore}
"""The first two are tested in unit/resources/spark/emr/test_jobs.py, because they upload files before the first call.
ObjectStore sends no requests: cdc_lake/contract/objects/store.py does.
"""


@dataclass(frozen=True)
class Case:
    """A resource's fields, a call, and the object that its errors must name."""

    fields: dict[str, Any]
    call: Callable[[Any], object]
    object_name: str


CASES: dict[type[AwsResource], Case] = {
    Athena: Case({"workgroup": "cdc-lake-dev"}, lambda resource: resource.query("SELECT 1"), "Athena"),
    CloudWatchMetrics: Case(
        {"environment": "dev"}, lambda resource: resource.put("shop", {UNLANDED: 1.0}), "UnlandedOffsets of dev/shop"
    ),
    GlueCatalog: Case({}, lambda resource: resource.get_table("lake", "orders"), "Glue table lake.orders"),
    JobFiles: Case({"bucket": "code"}, lambda resource: resource.put_new("a.json", b"{}"), "s3://code/spark/a.json"),
    Msk: Case({"cluster_arn": CLUSTER}, lambda resource: resource.bootstrap(), CLUSTER),
    MskConnect: Case(
        {"settings": SETTINGS, "kafka": FakeKafka()},
        lambda resource: resource.status("cdc-lake-shop"),
        "connector cdc-lake-shop",
    ),
    MskPlugins: Case(
        {"bucket": "code"}, lambda resource: resource.ensure(Path("debezium-1.zip")), "custom plugin debezium-1"
    ),
    QuickSight: Case(
        {"account_id": ACCOUNT, "principal": "group/analysts"},
        lambda resource: resource.data_source(),
        "datasource/cdc-lake-ath",
    ),
    DatabaseSecret: Case({"secret_id": SECRET}, lambda resource: resource.login(), SECRET),
    Sqs: Case({"queue_url": QUEUE}, lambda resource: resource.receive(), QUEUE),
    Sts: Case({}, lambda resource: resource.identity(), "get-caller-identity"),
}
for_each_resource = pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)


@contextmanager
def refusing(code: str, status: int = 400) -> Iterator[tuple[str, list[str]]]:
    """Serve this error code to every request, in each protocol; yield the URL and the received methods."""
    methods: list[str] = []

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        methods.append(environ["REQUEST_METHOD"])
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        scope = environ.get("HTTP_AUTHORIZATION", "")
        inner = f"<Code>{code}</Code><Message>message of AWS</Message>"
        if "/s3/" in scope:
            body = f"<Error>{inner}</Error>"
        elif "/sts/" in scope:
            body = f"<ErrorResponse><Error>{inner}</Error></ErrorResponse>"
        else:
            body = json.dumps({"__type": code, "message": "message of AWS"})
        sent = body.encode() if environ["REQUEST_METHOD"] != "HEAD" else b""
        start_response(f"{status} Refused", [("x-amzn-ErrorType", code), ("Content-Length", str(len(sent)))])
        return [sent]

    with listening(answer) as url:
        yield url, methods


def resource_at(kind: type[AwsResource], url: str, attempts: int = 1) -> AwsResource:
    """Return the resource with this endpoint."""
    keys = {"access_key": "key", "secret_key": "secret", "attempts": attempts}
    resource = kind(**{**CASES[kind].fields, **keys, "endpoint_url": url})
    resource._session = SESSION  # shared, because it loads the services' models
    return resource


def concrete_subclasses(kind: type[Any]) -> set[type[Any]]:
    """Return all concrete subclasses in the package `resources`."""
    below = {kind}.union(*(concrete_subclasses(each) for each in kind.__subclasses__()))
    return {each for each in below if each.__module__.startswith("resources.") and not inspect.isabstract(each)}


def test_every_aws_resource_is_tested() -> None:
    for module in pkgutil.walk_packages(resources.__path__, "resources."):
        importlib.import_module(module.name)
    assert concrete_subclasses(AwsResource) - {AwsResource} == CASES.keys() | ELSEWHERE


@for_each_resource
@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("ExpiredTokenException", "The credentials have expired. Get new ones"),
        ("ExpiredToken", "The credentials have expired. Get new ones"),
        ("AccessDeniedException", "infra/aws"),
        ("AccessDenied", "their permissions"),
        ("UnrecognizedClientException", "Check the credentials"),
    ],
)
def test_refused_access_is_reported_without_a_retry(kind: type[AwsResource], code: str, advice: str) -> None:
    with refusing(code) as (url, methods), pytest.raises(AccessRefused) as caught:
        CASES[kind].call(resource_at(kind, url, attempts=3))
    message = str(caught.value)
    assert CASES[kind].object_name in message
    assert f"{url} returned {code}: message of AWS" in message
    assert advice in message
    assert len(methods) == 1, "refused access is not retried"


@for_each_resource
def test_throttling_is_retried_up_to_the_number_of_attempts(
    kind: type[AwsResource], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time.sleep", waits.append)
    code = "SlowDown" if kind is JobFiles else "ThrottlingException"
    with refusing(code) as (url, methods), pytest.raises(ResourceError) as caught:
        CASES[kind].call(resource_at(kind, url, attempts=4))
    message = str(caught.value)
    assert CASES[kind].object_name in message
    assert f"{code}: message of AWS" in message
    assert "AWS throttled all 4 attempts. Run this again later, or raise the resource's `attempts`." in message
    assert len(methods) == 4
    assert len(waits) == 3
    assert len(set(waits)) == 3, "waits have jitter"
    assert max(waits) <= 20


@for_each_resource
def test_an_unreachable_endpoint_is_reported(kind: type[AwsResource]) -> None:
    resource = resource_at(kind, "http://127.0.0.1:9").model_copy(update={"hint": "Start it."})
    with pytest.raises(Unreachable) as caught:
        CASES[kind].call(resource)
    message = str(caught.value)
    assert CASES[kind].object_name in message
    assert "http://127.0.0.1:9 does not answer" in message
    assert message.endswith("Start it.")


def test_a_denied_upload_is_reported(tmp_path: Path) -> None:
    jar = tmp_path / "hudi.jar"
    jar.write_bytes(b"hudi")

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        body = b"" if is_head else b"<Error><Code>AccessDenied</Code><Message>no s3:PutObject</Message></Error>"
        start_response("404 Gone" if is_head else "403 No", [("Content-Length", str(len(body)))])
        return [body]

    with (
        listening(answer) as url,
        pytest.raises(AccessRefused, match=r"Cannot write s3://code/spark/hudi\.jar:.*AccessDenied: no s3:PutObject"),
    ):
        resource_at(JobFiles, url).upload("hudi.jar", jar)  # type: ignore[attr-defined]


def test_a_denied_head_request_is_reported() -> None:
    with (
        refusing("AccessDenied", 403) as (url, methods),
        pytest.raises(AccessRefused, match=r"Cannot find s3://code/spark/a\.jar:.*403"),
    ):
        resource_at(JobFiles, url).size("a.jar")  # type: ignore[attr-defined]
    assert methods == ["HEAD"]


@pytest.mark.parametrize(
    ("error", "raised", "advice"),
    [
        (UnauthorizedSSOTokenError(), AccessRefused, "aws sso login"),
        (ProfileNotFound(profile="dev"), AccessRefused, r"profile \(dev\) could not be found.*AWS_PROFILE"),
        (ParamValidationError(report="Name: too long"), AwsRequestFailed, "at AWS in us-east-1: .*Name: too long"),
    ],
)
def test_errors_of_boto3_before_a_request_are_reported(error: Exception, raised: type[Exception], advice: str) -> None:
    with pytest.raises(raised, match=f"Cannot read the thing.*{advice}"), Sts().translate_errors("read the thing"):
        raise error


def test_a_missing_profile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody's")
    with pytest.raises(AccessRefused, match=r"nobody's.*set AWS_PROFILE"):
        Sts().identity()


def test_sts_identity_is_parsed() -> None:
    inner = f"<Arn>arn:aws:iam::{ACCOUNT}:user/anna</Arn><UserId>u</UserId><Account>{ACCOUNT}</Account>"
    result = f"<GetCallerIdentityResult>{inner}</GetCallerIdentityResult>"
    body = f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>".encode()

    def answer(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    with listening(answer) as url:
        found = resource_at(Sts, url).identity()  # type: ignore[attr-defined]
    assert (found.account, found.arn) == (ACCOUNT, f"arn:aws:iam::{ACCOUNT}:user/anna")
