"""Tokens for MSK: their signature, and how clients get them."""

from __future__ import annotations

import base64
import time
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from resources.errors import AccessRefused, Unreachable
from resources.kafka.client import Broker
from resources.kafka.msk_iam import IamTokens, Token
from resources.kafka.resource import Kafka

REGION = "eu-central-1"


@pytest.fixture
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Credentials:
    """The credentials of a role, in the environment."""
    remove_credentials(tmp_path, monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/token==")
    return Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI", "session/token==")


def remove_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all credentials from the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


def decoded(token: str) -> str:
    """Return the URL in a token."""
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def test_a_token_is_a_presigned_url_that_a_broker_can_verify(
    identity: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = int(time.time())
    token, expires = IamTokens(REGION)("")
    assert "=" not in token
    url = urlsplit(decoded(token))
    params = dict(parse_qsl(url.query))
    assert (url.scheme, url.netloc, url.path) == ("https", "kafka.eu-central-1.amazonaws.com", "/")
    assert params["Action"] == "kafka-cluster:Connect"
    assert params["X-Amz-Expires"] == "900"
    assert params["X-Amz-Security-Token"] == "session/token=="
    assert params["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
    assert params["X-Amz-Credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
    assert params.pop("User-Agent") == "cdc-lake"
    assert before + 900 <= expires <= time.time() + 900

    # The broker computes the signature again from its knowledge of the identity; here with the same time.
    signer = SigV4QueryAuth(identity, "kafka-cluster", REGION, expires=900)
    request = AWSRequest("GET", f"https://{url.netloc}/", params={"Action": "kafka-cluster:Connect"})
    signed_at = datetime.strptime(params["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: signed_at)
    signer.add_auth(request)
    assert dict(parse_qsl(urlsplit(str(request.url)).query))["X-Amz-Signature"] == params["X-Amz-Signature"]


def test_missing_credentials_are_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_credentials(tmp_path, monkeypatch)
    with pytest.raises(AccessRefused, match="there are no AWS credentials"):
        IamTokens(REGION)("")
    began = time.monotonic()
    with pytest.raises(AccessRefused, match="there are no AWS credentials"):
        Broker("127.0.0.1:9", tokens=IamTokens(REGION)).admin()
    assert time.monotonic() - began < 5  # librdkafka alone would wait ten seconds and not report the cause


def test_clients_request_a_token_and_renew_it_in_time() -> None:
    tokens_issued: list[float] = []

    def tokens(_config: str = "") -> Token:
        tokens_issued.append(time.time())
        return f"token-{len(tokens_issued)}", time.time() + 1.0

    broker = Broker("127.0.0.1:9", tokens=tokens)
    consumer = broker.consumer()
    deadline = time.monotonic() + 5
    while len(tokens_issued) < 3 and time.monotonic() < deadline:
        consumer.poll(0.05)
    consumer.close()
    assert len(tokens_issued) >= 3  # our code requests the first token to report errors; librdkafka requests the others


@pytest.mark.usefixtures("identity")
def test_the_resource_authenticates_according_to_its_security() -> None:
    plain = Kafka(bootstrap="b-1:9092")
    assert plain._broker.tokens is None
    assert plain.spark_options() == {"bootstrap.servers": "b-1:9092"}

    signed = Kafka(bootstrap="b-1:9098", security="iam", region=REGION, hint="Ask operations.")
    assert signed._broker.tokens is signed._broker.tokens is not None
    settings = signed._broker._common()
    assert (settings["security.protocol"], settings["sasl.mechanisms"]) == ("SASL_SSL", "OAUTHBEARER")
    assert "AKIDEXAMPLE" in decoded(settings["oauth_cb"]("")[0])
    assert signed.spark_options() == {
        "bootstrap.servers": "b-1:9098",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }


@pytest.mark.usefixtures("identity")
def test_a_closed_connection_is_reported_with_possible_causes() -> None:
    nowhere = Kafka(bootstrap="127.0.0.1:9", security="iam", hint="Ask operations.")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9.*kafka-cluster:Connect.*9098.*Ask operations"):
        nowhere.topics()
