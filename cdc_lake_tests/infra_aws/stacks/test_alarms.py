"""Alarms: their metrics and thresholds, and the topic that each notifies."""

from __future__ import annotations

from typing import Any

from cdc_lake_tests.infra_aws.conftest import Synthesized


def alarms(environment: Synthesized) -> dict[str, dict[str, Any]]:
    """Return the alarms by name without the environment's prefix."""
    found = environment.of("alarms", "AWS::CloudWatch::Alarm").values()
    return {each["AlarmName"].removeprefix(f"{environment.size.prefix}-"): each for each in found}


def test_every_pipeline_has_its_own_alarms(opposite_of_dev: Synthesized) -> None:
    each = ("failed-tasks", "no-task", "freshness", "unlanded")
    assert set(alarms(opposite_of_dev)) == {"retained-wal", "unhandled-events", "consumer-lag"} | {
        f"{pipeline}-{name}" for pipeline in opposite_of_dev.size.pipelines for name in each
    }


def test_each_alarm_notifies_the_topic_of_its_begin_and_end(environment: Synthesized) -> None:
    [topic] = environment.of("alarms", "AWS::SNS::Topic")
    for alarm in alarms(environment).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]


def test_an_alarm_watches_the_retained_wal_of_the_source(environment: Synthesized) -> None:
    alarm = alarms(environment)["retained-wal"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/RDS", "TransactionLogsDiskUsage")
    assert [each["Name"] for each in alarm["Dimensions"]] == ["DBClusterIdentifier"]
    assert alarm["Threshold"] == environment.size.retained_wal_mib * 1024 * 1024


def test_alarms_watch_failed_and_missing_tasks_of_a_connector(environment: Synthesized) -> None:
    found = alarms(environment)
    failed, none = found["northwind-failed-tasks"], found["northwind-no-task"]
    for alarm in (failed, none):
        assert alarm["Namespace"] == "AWS/KafkaConnect"
        assert alarm["Dimensions"] == [{"Name": "ConnectorName", "Value": "cdc-lake-northwind"}]
    assert (failed["MetricName"], failed["ComparisonOperator"]) == ("ErroredTaskCount", "GreaterThanThreshold")
    assert (none["MetricName"], none["ComparisonOperator"]) == ("RunningTaskCount", "LessThanThreshold")
    assert none["TreatMissingData"] == "breaching", "a deleted connector reports no metric"


def test_missing_freshness_data_raises_the_alarm(environment: Synthesized) -> None:
    alarm = alarms(environment)["northwind-freshness"]
    assert alarm["Threshold"] == environment.size.freshness_seconds
    assert alarm["TreatMissingData"] == "breaching"
    assert {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == {
        "Environment": environment.size.name,
        "Pipeline": "northwind",
    }


def test_the_consumer_lag_is_that_of_the_environments_cluster(environment: Synthesized) -> None:
    [query] = alarms(environment)["consumer-lag"]["Metrics"]
    cluster = environment.one("streaming", "AWS::MSK::Cluster")["ClusterName"]
    assert f"WHERE \"Cluster Name\" = '{cluster}'" in query["Expression"]
    assert query["Period"] == 300


def test_dagster_may_write_metrics_to_the_alarms_namespace(environment: Synthesized) -> None:
    read = {a["Namespace"] for name, a in alarms(environment).items() if name.endswith(("freshness", "unlanded"))}
    assert read == {"cdc-lake"}
    assert "'cloudwatch:namespace': 'cdc-lake'" in str(environment.of("dagster", "AWS::IAM::Policy"))


def test_the_alarm_mail_address_of_the_size_is_subscribed(dev: Synthesized, opposite_of_dev: Synthesized) -> None:
    assert dev.of("alarms", "AWS::SNS::Subscription") == {}
    assert opposite_of_dev.one("alarms", "AWS::SNS::Subscription")["Endpoint"] == "someone@example.com"
