"""What the running endpoint tells of the stack to those who look it up: its broker, and its database's login."""

from __future__ import annotations

import pytest

from cdc_lake_tests.integration.conftest import QueryStack
from resources.aws.secrets import DatabaseSecret
from resources.errors import AccessRefused
from resources.kafka.msk import ListenerMissing, Msk


def _secret(query_stack: QueryStack, key: str | None = None) -> DatabaseSecret:
    at = query_stack.at
    return DatabaseSecret(
        endpoint_url=at.aws_endpoint,
        access_key=at.s3_access_key,
        secret_key=key or at.s3_secret_key.get_secret_value(),
        attempts=1,
        secret_id=at.postgres_secret,
    )


def test_the_broker_is_found_by_the_clusters_arn(query_stack: QueryStack) -> None:
    at = query_stack.at
    msk = Msk(
        endpoint_url=at.aws_endpoint,
        access_key=at.s3_access_key,
        secret_key=at.s3_secret_key.get_secret_value(),
        cluster_arn=at.kafka_cluster,
    )
    assert msk.bootstrap("plaintext") == at.kafka_bootstrap
    assert msk.describe().state == "HEALING"  # this stack has no broker running
    assert msk.describe().kafka_version == "4.3.1"
    with pytest.raises(ListenerMissing, match="no listener for iam"):
        msk.bootstrap()


def test_the_databases_login_is_there_for_the_stacks_keys_also_after_a_kill(query_stack: QueryStack) -> None:
    at = query_stack.at
    password = at.postgres_password.get_secret_value()
    with pytest.raises(AccessRefused, match="does not match the stack's keys"):
        _secret(query_stack, key="guessed").login()
    for _ in range(2):
        found = _secret(query_stack)._read()  # not what this process has kept
        assert (found.username, found.password) == (at.postgres_user, password)
        query_stack.kill("aws")
        query_stack.repair()
    assert password not in query_stack.stack.home.log("aws").read_text()
