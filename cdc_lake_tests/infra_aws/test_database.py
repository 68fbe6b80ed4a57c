"""The source: logical replication, secrets, and the SQL that a person runs."""

from __future__ import annotations

import json

from cdc_lake_tests.infra_aws.conftest import Synthesized
from infra.aws.stacks.database import REPLICATION_USER


def test_logical_replication_is_on(environment: Synthesized) -> None:
    [(name, group)] = environment.of("database", "AWS::RDS::DBClusterParameterGroup").items()
    assert group["Parameters"]["rds.logical_replication"] == "1"
    assert group["Family"] == "aurora-postgresql16"
    cluster = environment.one("database", "AWS::RDS::DBCluster")
    assert cluster["DBClusterParameterGroupName"] == {"Ref": name}


def test_it_is_private_and_encrypted_and_only_the_secret_knows_its_password(environment: Synthesized) -> None:
    cluster = environment.one("database", "AWS::RDS::DBCluster")
    assert cluster["StorageEncrypted"] is True
    assert "resolve:secretsmanager" in json.dumps(cluster["MasterUserPassword"])
    instances = environment.of("database", "AWS::RDS::DBInstance").values()
    assert len(instances) == environment.size.database.instances
    assert [instance["PubliclyAccessible"] for instance in instances] == [False] * len(instances)


def test_what_becomes_of_it_with_its_stack(dev: Synthesized, production: Synthesized) -> None:
    policies = {}
    for each in (dev, production):
        resources = each.templates["database"]["Resources"].values()
        [cluster] = [resource for resource in resources if resource["Type"] == "AWS::RDS::DBCluster"]
        policies[each.size.name] = (cluster["DeletionPolicy"], cluster["Properties"]["DeletionProtection"])
    assert policies == {"dev": ("Delete", False), "production": ("Snapshot", True)}


def test_the_users_password_is_made_not_written(environment: Synthesized) -> None:
    secrets = environment.of("database", "AWS::SecretsManager::Secret").values()
    [secret] = [each for each in secrets if each["Name"].endswith("/source/replication")]
    made = secret["GenerateSecretString"]
    assert json.loads(made["SecretStringTemplate"]) == {"username": REPLICATION_USER}
    assert made["GenerateStringKey"] == "password"
    assert "SecretString" not in secret


def test_the_server_does_not_log_the_password(environment: Synthesized) -> None:
    group = environment.one("database", "AWS::RDS::DBClusterParameterGroup")
    assert group["Parameters"]["log_statement"] == "none"
