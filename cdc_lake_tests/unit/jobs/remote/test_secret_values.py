"""Passwords from Secrets Manager, as plain text or as RDS writes them, with botocore's Stubber."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from cdc_lake.contract.errors import SecretUnreadableError
from cdc_lake.jobs.remote import secret_values

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:source-AbCdEf"


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """A stub of Secrets Manager in eu-west-1."""
    regions: list[str | None] = []
    keys: dict[str, Any] = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = boto3.client("secretsmanager", region_name="eu-west-1", **keys)

    def client_factory(service: str, region_name: str | None, config: object) -> object:
        assert (service, bool(config)) == ("secretsmanager", True)
        regions.append(region_name)
        return client

    monkeypatch.setattr(boto3, "client", client_factory)
    with Stubber(client) as found:
        yield found
    assert regions == ["eu-west-1"]


@pytest.mark.parametrize(
    ("text", "password"),
    [("pass", "pass"), ('{"username": "u", "password": "pa ss"}', "pa ss"), ("123", "123"), ('"quoted"', '"quoted"')],
)
def test_a_password_is_the_text_or_a_member_of_the_object(stub: Stubber, text: str, password: str) -> None:
    stub.add_response("get_secret_value", {"SecretString": text}, {"SecretId": ARN})
    assert secret_values.password(ARN) == password


@pytest.mark.parametrize("text", ['{"username": "u"}', '{"password": 5}'])
def test_an_object_without_a_password_is_rejected(stub: Stubber, text: str) -> None:
    stub.add_response("get_secret_value", {"SecretString": text}, {"SecretId": ARN})
    with pytest.raises(SecretUnreadableError, match=f"{ARN}: it is a JSON object without") as caught:
        secret_values.password(ARN)
    assert '"u"' not in caught.value.user_message


def test_denied_access_names_the_secret_and_the_permission(stub: Stubber) -> None:
    stub.add_client_error("get_secret_value", "AccessDeniedException", "no")
    with pytest.raises(SecretUnreadableError, match=rf"Cannot read secret {ARN} .*AccessDenied.*GetSecretValue"):
        secret_values.password(ARN)


def test_a_binary_secret_is_rejected(stub: Stubber) -> None:
    stub.add_response("get_secret_value", {"SecretBinary": b"x"}, {"SecretId": ARN})
    with pytest.raises(SecretUnreadableError, match="the secret must be a text, not binary"):
        secret_values.password(ARN)
