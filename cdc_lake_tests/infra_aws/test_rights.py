"""The rights of the code location and of Spark's jobs, held against the calls that are in the code: none too few, and
none that nobody needs.
"""

from __future__ import annotations

import re

import pytest

from cdc_lake_tests.infra_aws.calls import KAFKA, PRODUCT, RESOURCES, actions, kafka_calls, modules
from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.statements import Statement, statements, text
from infra.aws.stacks.connect import offsets_topic

BY_PEOPLE = RESOURCES / "msk_connect" / "plugins.py"
"""`cdc-lake aws plugins upload`, which runs with the rights of whoever types it."""
STORE = PRODUCT / "contract" / "objects" / "store.py"
SECRETS = PRODUCT / "jobs" / "remote" / "secret_values.py"
PYATHENA = {f"athena:{each}" for each in ("StartQueryExecution", "GetQueryExecution", "GetQueryResults")} | {
    "athena:StopQueryExecution"
}
"""Its cursor's calls; it makes its client itself."""
NOT_WANTED = {
    "glue:CreateDatabase": "the catalog's stack makes the one database, which GlueCatalog finds",
    "cloudwatch:ListTagsForResource": "only MSK Connect's operation of that name is called",
    "cloudwatch:TagResource": "as above",
    "kafka:ListTopics": "only the admin client of confluent-kafka has a method of that name",
    "sts:GetCallerIdentity": "everybody may ask who they are",
}

_DELIVERY = "MSK Connect sets a connector's log up with its maker's rights"
_ATHENA = "Athena asks with its caller's rights"
_PARTS = "a large object goes up in parts, by boto3, Athena and EMR alike"
_SHELL = "`aws ecs execute-command`, and its log (written by the CDK)"
BESIDE: dict[str, str] = {
    "athena:GetDataCatalog": _ATHENA,
    "ec2:CreateNetworkInterface": "MSK Connect makes and looks at the network with a connector's maker's rights",
    "ec2:DescribeNetworkInterfaces": "as above",
    "ec2:DescribeSecurityGroups": "as above",
    "ec2:DescribeSubnets": "as above",
    "ec2:DescribeVpcs": "as above",
    "glue:GetDatabases": _ATHENA,
    "glue:GetPartition": _ATHENA,
    "iam:CreateServiceLinkedRole": "the account's first connector makes the role of MSK Connect itself",
    "iam:PassRole": "connectors, job runs and data sources are given a role",
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
"""Rights of the code location that no call in the code is named like."""


def rights(environment: Synthesized, role: str) -> list[Statement]:
    """What a role may do, by the role's name without the environment's prefix."""
    ids, policies = set(), set()
    for where, kind, resource in environment.resources():
        properties = resource.get("Properties", {})
        if kind == "AWS::IAM::Role" and properties.get("RoleName") == f"{environment.size.prefix}-{role}":
            ids.add(where.rpartition("/")[2])
            policies |= {text(each) for each in properties.get("ManagedPolicyArns", [])}
    assert len(ids) == 1, f"there is no role {role}"
    found = []
    for where, kind, resource in environment.resources():
        name = where.rpartition("/")[2]
        own = kind == "AWS::IAM::Policy" and any(each.get("Ref") in ids for each in resource["Properties"]["Roles"])
        attached = kind == "AWS::IAM::ManagedPolicy" and any(name in each for each in policies)
        if own or attached:
            found += [each for each in statements(environment) if each.where == where]
    assert found, f"the role {role} may do nothing"
    return found


def allowed(given: list[Statement]) -> set[str]:
    """The actions of statements."""
    return {action for each in given for action in each.actions}


def called(*, cluster: bool) -> set[str]:
    """The actions of what the code location calls; steps only where there is a cluster."""
    found = {*actions([*(path for path in modules() if path != BY_PEOPLE), STORE]), *PYATHENA} - NOT_WANTED.keys()
    return {action for action in found if cluster or not action.startswith("elasticmapreduce:")}


def test_the_calls_are_found_where_they_are() -> None:
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


def test_the_code_location_may_do_what_it_calls(environment: Synthesized) -> None:
    given = allowed(rights(environment, "dagster"))
    assert called(cluster=environment.size.emr.cluster is not None) - given == set()


def test_the_code_location_may_do_nothing_else(environment: Synthesized) -> None:
    given = {each for each in allowed(rights(environment, "dagster")) if not each.startswith("kafka-cluster:")}
    assert given - called(cluster=True) == set(BESIDE)


def test_what_is_not_wanted_is_called() -> None:
    assert NOT_WANTED.keys() <= actions(modules()).keys()


def test_each_call_of_kafkas_is_known() -> None:
    assert kafka_calls() == set(KAFKA)


def test_the_code_location_may_do_what_it_asks_of_kafka(environment: Synthesized) -> None:
    given = {each for each in allowed(rights(environment, "dagster")) if each.startswith("kafka-cluster:")}
    assert given == {f"kafka-cluster:{action}" for wanted in KAFKA.values() for action in wanted}


def test_topics_by_what_is_done_to_them(variant: Synthesized) -> None:
    given = rights(variant, "dagster")
    topics = {"msk.*", "pagila.*"}
    beats = {"__debezium-heartbeat.msk", "__debezium-heartbeat.pagila"}
    offsets = {offsets_topic("northwind"), offsets_topic("pagila_query")}

    def on(action: str) -> set[str]:
        found = {each for statement in given if action in statement.actions for each in statement.resources}
        return {each.rpartition("/")[2] for each in found}

    assert on("kafka-cluster:CreateTopic") == on("kafka-cluster:AlterTopicDynamicConfiguration") == topics
    assert on("kafka-cluster:DeleteTopic") == topics | beats
    assert on("kafka-cluster:ReadData") == topics | offsets
    assert on("kafka-cluster:WriteData") == offsets, "nobody but Connect writes changes"
    assert on("kafka-cluster:DescribeTopic") == topics | beats | offsets


@pytest.mark.parametrize("role", ["dagster", "quicksight"])
def test_athena_may_ask_glue_with_its_callers_rights(environment: Synthesized, role: str) -> None:
    given, catalog = rights(environment, role), environment.size.catalog

    def on(action: str) -> set[str]:
        found = {each for statement in given if action in statement.actions for each in statement.resources}
        return {each.rpartition(":")[2] for each in found}

    tables = {"catalog", f"database/{catalog}", f"table/{catalog}/*"}
    assert on("glue:BatchGetPartition") == tables
    assert on("glue:GetPartition") >= tables
    assert on("glue:GetDatabase") >= {*tables, "database/default"}


def test_dagster_looks_at_no_table_of_the_database_default(environment: Synthesized) -> None:
    found = {
        action
        for each in rights(environment, "dagster")
        if any(resource.endswith(":database/default") for resource in each.resources)
        for action in each.actions
    }
    assert found == {"glue:GetDatabase"}


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_jobs_may_do_what_they_call(environment: Synthesized, role: str) -> None:
    given = rights(environment, role)
    assert set(actions([STORE])) | set(actions([SECRETS])) <= allowed(given)
    beside = {each for each in allowed(given) if not each.startswith(("kafka-cluster:", "glue:"))}
    assert beside - set(actions([STORE])) - set(actions([SECRETS])) == {
        "s3:AbortMultipartUpload",
        "s3:GetBucketLocation",
        "s3:ListBucketMultipartUploads",
        "s3:ListMultipartUploadParts",
    }
    assert "kafka-cluster:WriteData" not in allowed(given)


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_a_job_leaves_its_report_and_changes_no_code(environment: Synthesized, role: str) -> None:
    given = rights(environment, role)

    def below(action: str) -> set[str]:
        found = [each for statement in given if action in statement.actions for each in statement.resources]
        return {match[1] for each in found if (match := re.search(r"Artifacts.*}/(.*)$", each))}

    assert below("s3:PutObject") == {"spark/runs/*"}
    assert below("s3:GetObject") == {"spark/*", "spark/runs/*"}
    assert below("s3:DeleteObject") == set()


@pytest.mark.parametrize("role", ["spark-job", "spark-node"])
def test_what_a_person_puts_there_for_spark_can_be_read(variant: Synthesized, role: str) -> None:
    found = {each for statement in rights(variant, role) for each in statement.resources}
    for key in ("python/environment.tar.gz", "python/install.sh", "python/requirements.lock"):
        assert any(each.endswith(f"/{key}*") for each in found)
