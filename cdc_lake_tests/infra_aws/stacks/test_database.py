"""The source database: logical replication, encryption and secrets."""

from __future__ import annotations

import json

from cdc_lake_tests.infra_aws.conftest import Synthesized
from infra.aws.stacks.database import REPLICATION_USER


def test_logical_replication_is_enabled(environment: Synthesized) -> None:
    [(name, group)] = environment.of("database", "AWS::RDS::DBClusterParameterGroup").items()
    assert group["Parameters"]["rds.logical_replication"] == "1"
    assert group["Family"] == "aurora-postgresql16"
    cluster = environment.one("database", "AWS::RDS::DBCluster")
    assert cluster["DBClusterParameterGroupName"] == {"Ref": name}


def test_it_is_private_and_encrypted_and_its_password_is_in_the_secret_only(environment: Synthesized) -> None:
    cluster = environment.one("database", "AWS::RDS::DBCluster")
    assert cluster["StorageEncrypted"] is True
    assert "resolve:secretsmanager" in json.dumps(cluster["MasterUserPassword"])
    instances = environment.of("database", "AWS::RDS::DBInstance").values()
    assert len(instances) == environment.size.database.instances
    assert [instance["PubliclyAccessible"] for instance in instances] == [False] * len(instances)


def test_the_production_database_is_kept_when_its_stack_is_deleted(dev: Synthesized, production: Synthesized) -> None:
    policies = {}
    for each in (dev, production):
        resources = each.templates["database"]["Resources"].values()
        [cluster] = [resource for resource in resources if resource["Type"] == "AWS::RDS::DBCluster"]
        policies[each.size.name] = (cluster["DeletionPolicy"], cluster["Properties"]["DeletionProtection"])
    assert policies == {"dev": ("Delete", False), "production": ("Snapshot", True)}


def test_the_replication_password_is_generated(environment: Synthesized) -> None:
    secrets = environment.of("database", "AWS::SecretsManager::Secret").values()
    [secret] = [each for each in secrets if each["Name"].endswith("/source/replication")]
    generated = secret["GenerateSecretString"]
    assert json.loads(generated["SecretStringTemplate"]) == {"username": REPLICATION_USER}
    assert generated["GenerateStringKey"] == "password"
    assert "SecretString" not in secret


def test_the_server_does_not_log_the_password(environment: Synthesized) -> None:
    group = environment.one("database", "AWS::RDS::DBClusterParameterGroup")
    assert group["Parameters"]["log_statement"] == "none"
