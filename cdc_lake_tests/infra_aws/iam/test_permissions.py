"""The code location and Spark's jobs have exactly the permissions for the calls in their code."""

from __future__ import annotations

import re

import pytest

from cdc_lake_tests.infra_aws.conftest import CREDENTIALS, SALT, Synthesized
from cdc_lake_tests.infra_aws.iam.calls import KAFKA, PRODUCT, RESOURCES, actions, kafka_calls, modules
from cdc_lake_tests.infra_aws.iam.role_statements import allowed, role_statements
from cdc_lake_tests.infra_aws.iam.statements import statements
from infra.aws.stacks.connect import offsets_topic

BY_PEOPLE = RESOURCES / "msk_connect" / "plugins.py"
"""`cdc-lake aws plugins upload`, which runs with the user's own permissions."""
STORE = PRODUCT / "contract" / "objects" / "store.py"
SECRETS = PRODUCT / "jobs" / "remote" / "secret_values.py"
PYATHENA = {f"athena:{each}" for each in ("StartQueryExecution", "GetQueryExecution", "GetQueryResults")} | {
    "athena:StopQueryExecution"
}
"""The calls of PyAthena's cursor, which creates its own client."""
NOT_NEEDED = {
    "glue:CreateDatabase": "the catalog's stack creates the databases",
    "cloudwatch:ListTagsForResource": "only MSK Connect's operation of that name is called",
    "cloudwatch:TagResource": "as above",
    "kafka:ListTopics": "only the admin client of confluent-kafka has a method of that name",
    "sts:GetCallerIdentity": "every identity may call it without a permission",
}

_DELIVERY = "MSK Connect creates a connector's log delivery with the permissions of its creator"
_ATHENA = "Athena uses its caller's permissions"
_PARTS = "boto3, Athena and EMR upload large objects in parts"
_SHELL = "`aws ecs execute-command`, and its log (written by the CDK)"
INDIRECT: dict[str, str] = {
    "athena:GetDataCatalog": _ATHENA,
    "ec2:CreateNetworkInterface": "MSK Connect manages network interfaces with a connector creator's permissions",
    "ec2:DescribeNetworkInterfaces": "as above",
    "ec2:DescribeSecurityGroups": "as above",
    "ec2:DescribeSubnets": "as above",
    "ec2:DescribeVpcs": "as above",
    "glue:GetDatabases": _ATHENA,
    "glue:GetPartition": _ATHENA,
    "iam:CreateServiceLinkedRole": "the account's first connector creates MSK Connect's service-linked role",
    "iam:PassRole": "connectors, job runs and data sources have a role",
    "logs:CreateLogDelivery": _DELIVERY,
    "logs:DeleteLogDelivery": _DELIVERY,
    "logs:UpdateLogDelivery": _DELIVERY,
    "logs:CreateLogStream": _SHELL,
    "logs:DescribeLogGroups": _DELIVERY,
    "logs:DescribeLogStreams": _SHELL,
    "logs:DescribeResourcePolicies": _DELIVERY,
    "logs:GetLogDelivery": _DELIVERY,
    "logs:ListLogDeliveries": _DELIVERY,
    "logs:PutLogEvents": _SHELL,
    "logs:PutResourcePolicy": _DELIVERY,
    "quicksight:PassDataSet": "an analysis or a dashboard names its dataset",
    "quicksight:PassDataSource": "a dataset names its data source",
    "s3:AbortMultipartUpload": _PARTS,
    "s3:GetBucketLocation": _ATHENA,
    "s3:ListBucketMultipartUploads": _PARTS,
    "s3:ListMultipartUploadParts": _PARTS,
    "ssmmessages:CreateControlChannel": _SHELL,
    "ssmmessages:CreateDataChannel": _SHELL,
    "ssmmessages:OpenControlChannel": _SHELL,
    "ssmmessages:OpenDataChannel": _SHELL,
}
"""Permissions of the code location that no call in the code is named after, with the reason for each."""


def called(*, cluster: bool) -> set[str]:
    """Return the actions of the code location's calls; those of EMR steps only with a cluster."""
    found = {*actions([*(path for path in modules() if path != BY_PEOPLE), STORE]), *PYATHENA} - NOT_NEEDED.keys()
    return {action for action in found if cluster or not action.startswith("elasticmapreduce:")}


def test_calls_of_every_form_are_found() -> None:
    found = actions(modules())
    assert found.keys() >= {
        "cloudwatch:PutMetricData",
        "elasticmapreduce:AddJobFlowSteps",
        "emr-serverless:StartJobRun",
        "glue:GetTables",  # by a paginator
        "kafka:GetBootstrapBrokers",  # by a text
        "kafkaconnect:RestartConnector",  # by a text
        "quicksight:UpdateDataSourcePermissions",  # by a text with a kind in it
        "quicksight:CreateIngestion",  # in a module without a client
        "s3:PutObject",
        "secretsmanager:GetSecretValue",
        "sqs:DeleteMessage",
    }
    assert set(actions([BY_PEOPLE])) >= {"kafkaconnect:CreateCustomPlugin", "s3:PutObject"}


def test_the_code_location_has_the_permissions_for_its_calls(environment: Synthesized) -> None:
    given = allowed(role_statements(environment, "dagster"))
    assert called(cluster=environment.size.emr.cluster is not None) - given == set()


def test_the_code_location_has_no_other_permissions(environment: Synthesized) -> None:
    given = {each for each in allowed(role_statements(environment, "dagster")) if not each.startswith("kafka-cluster:")}
    assert given - called(cluster=True) == set(INDIRECT)


def test_every_exception_of_a_call_is_a_call() -> None:
    assert NOT_NEEDED.keys() <= actions(modules()).keys()


def test_the_actions_of_every_kafka_call_are_listed() -> None:
    assert kafka_calls() == set(KAFKA)


def test_the_code_location_has_the_permissions_for_its_kafka_calls(environment: Synthesized) -> None:
    given = {each for each in allowed(role_statements(environment, "dagster")) if each.startswith("kafka-cluster:")}
    assert given == {f"kafka-cluster:{action}" for needed in KAFKA.values() for action in needed}


def test_kafka_permissions_are_limited_to_topics(opposite_of_dev: Synthesized) -> None:
    given = role_statements(opposite_of_dev, "dagster")
    topics = {"msk.*", "pagila.*"}
    beats = {"__debezium-heartbeat.msk", "__debezium-heartbeat.pagila"}
    offsets = {offsets_topic("northwind"), offsets_topic("pagila_query")}

    def on(action: str) -> set[str]:
        found = {each for statement in given if action in statement.actions for each in statement.resources}
        return {each.rpartition("/")[2] for each in found}

    assert on("kafka-cluster:CreateTopic") == on("kafka-cluster:AlterTopicDynamicConfiguration") == topics
    assert on("kafka-cluster:DeleteTopic") == topics | beats
    assert on("kafka-cluster:ReadData") == topics | offsets
    assert on("kafka-cluster:WriteData") == offsets, "only Connect writes changes"
    assert on("kafka-cluster:DescribeTopic") == topics | beats | offsets


@pytest.mark.parametrize("role", ["dagster", "quicksight"])
def test_athenas_callers_may_read_glue(environment: Synthesized, opposite_of_dev: Synthesized, role: str) -> None:
    for each in (environment, opposite_of_dev):
        resources = glue_resources(each, role)
        names = each.size.glue_databases
        tables = {"catalog"} | {part for name in names for part in (f"database/{name}", f"table/{name}/*")}
        assert resources["glue:BatchGetPartition"] == tables
        assert resources["glue:GetPartition"] >= tables
        assert resources["glue:GetDatabase"] >= {*tables, "database/default"}


@pytest.mark.parametrize("role", ["dagster", "spark-job", "spark-node", "quicksight"])
def test_a_role_has_the_same_permissions_on_every_database(
    dev: Synthesized, opposite_of_dev: Synthesized, role: str
) -> None:
    def on(environment: Synthesized, database: str) -> dict[str, set[str]]:
        own = {f"database/{database}": "database", f"table/{database}/*": "tables"}
        found = glue_resources(environment, role).items()
        return {action: {own[each] for each in resources & own.keys()} for action, resources in found}

    [only] = dev.size.glue_databases
    with_one = on(dev, only)
    assert {"database", "tables"} in with_one.values()
    assert [on(opposite_of_dev, name) for name in opposite_of_dev.size.glue_databases] == [with_one] * 3


@pytest.mark.parametrize("role", ["dagster", "spark-job", "spark-node", "quicksight"])
def test_no_role_may_use_other_databases(opposite_of_dev: Synthesized, role: str) -> None:
    found = {each for resources in glue_resources(opposite_of_dev, role).values() for each in resources}
    parts = {part for name in opposite_of_dev.size.glue_databases for part in (f"database/{name}", f"table/{name}/*")}
    assert found - parts <= {"catalog", "database/default", "userDefinedFunction/*"}


def glue_resources(environment: Synthesized, role: str) -> dict[str, set[str]]:
    """Return the resources of each of a role's actions on Glue, without the account: `database/datalake`."""
    found: dict[str, set[str]] = {}
    for statement in role_statements(environment, role):
        for action in statement.actions:
            if action.startswith("glue:"):
                found.setdefault(action, set()).update(each.rpartition(":")[2] for each in statement.resources)
    return found


@pytest.mark.parametrize(
    ("role", "secrets"),
    [
        ("dagster", {CREDENTIALS, SALT}),
        ("spark-job", {CREDENTIALS, SALT}),
        ("spark-node", {CREDENTIALS, SALT}),
        ("connect", {CREDENTIALS}),  # Debezium takes the salt from the name of a setting, which is no reference
    ],
)
def test_a_role_may_only_read_the_secrets_of_the_user_that_it_uses(
    opposite_of_dev: Synthesized, role: str, secrets: set[str]
) -> None:
    given = [
        (action, resource)
        for statement in role_statements(opposite_of_dev, role)
        for action in statement.actions
        for resource in statement.resources
        if ":secret:" in resource
    ]
    assert {action for action, _ in given} == {"secretsmanager:GetSecretValue"}
    assert {secret.rpartition(":secret:")[2] for _, secret in given} == {f"{secret}-??????" for secret in secrets}


def test_no_other_role_may_read_the_users_secrets(opposite_of_dev: Synthesized) -> None:
    found = {each.where for each in statements(opposite_of_dev) if any(":secret:" in one for one in each.resources)}
    assert {where.partition("/")[0] for where in found} == {"connect", "dagster", "spark"}
    assert len(found) == 4, "Dagster's, Connect's, and the two roles of jobs"


def test_without_secrets_of_the_user_roles_may_read_the_sources_secret_only(environment: Synthesized) -> None:
    assert not [each for each in statements(environment) if any(":secret:" in one for one in each.resources)]


def test_dagster_may_read_no_table_of_the_database_default(environment: Synthesized) -> None:
    found = {
        action
        for each in role_statements(environment, "dagster")
        if any(resource.endswith(":database/default") for resource in each.resources)
        for action in each.actions
    }
    assert found == {"glue:GetDatabase"}


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_jobs_have_the_permissions_for_their_calls(environment: Synthesized, role: str) -> None:
    given = role_statements(environment, role)
    assert set(actions([STORE])) | set(actions([SECRETS])) <= allowed(given)
    others = {each for each in allowed(given) if not each.startswith(("kafka-cluster:", "glue:"))}
    assert others - set(actions([STORE])) - set(actions([SECRETS])) == {
        "s3:AbortMultipartUpload",
        "s3:GetBucketLocation",
        "s3:ListBucketMultipartUploads",
        "s3:ListMultipartUploadParts",
    }
    assert "kafka-cluster:WriteData" not in allowed(given)


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_jobs_that_poll_may_write_the_pipelines_topics_only(opposite_of_dev: Synthesized, role: str) -> None:
    writing = [each for each in role_statements(opposite_of_dev, role) if "kafka-cluster:WriteData" in each.actions]
    [statement] = writing
    assert statement.actions == ("kafka-cluster:WriteData",)
    assert {each.rpartition("/")[2] for each in statement.resources} == {"msk.*", "pagila.*"}


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_a_job_may_write_its_report_but_no_code(environment: Synthesized, role: str) -> None:
    given = role_statements(environment, role)

    def below(action: str) -> set[str]:
        found = [each for statement in given if action in statement.actions for each in statement.resources]
        return {match[1] for each in found if (match := re.search(r"Artifacts.*}/(.*)$", each))}

    assert below("s3:PutObject") == {"spark/runs/*"}
    assert below("s3:GetObject") == {"spark/*", "spark/runs/*"}
    assert below("s3:DeleteObject") == set()


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_jobs_may_read_the_users_spark_files(opposite_of_dev: Synthesized, role: str) -> None:
    found = {each for statement in role_statements(opposite_of_dev, role) for each in statement.resources}
    for key in ("python/environment.tar.gz", "python/install.sh", "python/requirements.lock"):
        assert any(each.endswith(f"/{key}*") for each in found)
