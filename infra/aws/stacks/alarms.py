"""Alarms on the stages between source and lake, and the SNS topic that they notify."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.connect import connector_name
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.object_events import EventsStack
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.streaming import StreamingStack
from resources.aws.metrics import NAMESPACE, UNLANDED, WATERMARK_AGE

_MIB = 1024**2
_FIVE = Duration.minutes(5)
LAG_LIMIT = 100_000
_BREACHING, _FINE = cloudwatch.TreatMissingData.BREACHING, cloudwatch.TreatMissingData.NOT_BREACHING


class AlarmsStack(LakeStack):
    """The SNS topic and the alarms of one environment."""

    def __init__(
        self, scope: Construct, size: Size, database: DatabaseStack, streaming: StreamingStack, events: EventsStack
    ) -> None:
        super().__init__(scope, "alarms", size, "alarms")
        self.topic = sns.Topic(self, "Topic", topic_name=f"{size.prefix}-alarms", enforce_ssl=True)
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": self.account}},
            )
        )
        if size.alarm_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(size.alarm_email))
        self._retained_wal(database)
        self._unhandled(events)
        self._consumer_lag(streaming)
        for pipeline in size.pipelines:
            self._connector(pipeline)
            self._reported(pipeline)
        CfnOutput(self, "AlarmTopic", value=self.topic.topic_arn)

    def _retained_wal(self, database: DatabaseStack) -> None:
        """Add an alarm on the WAL that Aurora retains for logical replication; without replication the metric is -1."""
        wal = database.cluster.metric("TransactionLogsDiskUsage", statistic="Maximum", period=_FIVE)
        self._alarm(
            "retained-wal",
            "A replication slot retains WAL because nothing reads it. Check the connector before the disk is full.",
            wal,
            self.size.retained_wal_mib * _MIB,
        )

    def _unhandled(self, events: EventsStack) -> None:
        waiting = events.unhandled.metric_approximate_number_of_messages_visible(period=_FIVE, statistic="Maximum")
        self._alarm(
            "unhandled-events",
            "The dead-letter queue contains events of raw objects that could not be processed.",
            waiting,
            0,
        )

    def _connector(self, pipeline: str) -> None:
        """Add alarms on a connector's tasks, whose states MSK Connect reports only as these metrics."""
        name = connector_name(pipeline)
        tasks = {
            metric: cloudwatch.Metric(
                namespace="AWS/KafkaConnect",
                metric_name=metric,
                dimensions_map={"ConnectorName": name},
                statistic="Maximum",
                period=_FIVE,
            )
            for metric in ("ErroredTaskCount", "RunningTaskCount")
        }
        self._alarm(
            f"{pipeline}-failed-tasks",
            f"A task of {name} failed; its log contains the cause.",
            tasks["ErroredTaskCount"],
            0,
        )
        self._alarm(
            f"{pipeline}-no-task",
            f"No task of {name} is running: changes wait in the source's WAL.",
            tasks["RunningTaskCount"],
            1,
            below=True,
            missing=_BREACHING,
        )

    def _reported(self, pipeline: str) -> None:
        """Add alarms on the metrics that Dagster publishes for a pipeline, and on a missing watermark age."""
        limits = {WATERMARK_AGE: (self.size.freshness_seconds, _BREACHING), UNLANDED: (LAG_LIMIT, _FINE)}
        texts = {
            WATERMARK_AGE: "The newest heartbeat in the lake is too old, or Dagster does not report its age.",
            UNLANDED: "Records in the topic are waiting for landing.",
        }
        for metric, (limit, missing) in limits.items():
            self._alarm(
                f"{pipeline}-{'freshness' if metric == WATERMARK_AGE else 'unlanded'}",
                texts[metric],
                cloudwatch.Metric(
                    namespace=NAMESPACE,
                    metric_name=metric,
                    dimensions_map={"Environment": self.size.name, "Pipeline": pipeline},
                    statistic="Maximum",
                    period=_FIVE,
                ),
                limit,
                missing=missing,
            )

    def _consumer_lag(self, streaming: StreamingStack) -> None:
        """Add an alarm on the largest consumer group lag, such as a vendor's sink's. Landings commit no offsets."""
        query = (  # a CloudWatch Metrics Insights query with our cluster's name
            'SELECT MAX(SumOffsetLag) FROM SCHEMA("AWS/Kafka", "Cluster Name", "Consumer Group", Topic) '  # noqa: S608
            f"WHERE \"Cluster Name\" = '{streaming.cluster_name}'"
        )
        lag = cloudwatch.MathExpression(expression=query, using_metrics={}, period=_FIVE, label="worst lag")
        self._alarm("consumer-lag", "The lag of a consumer group, such as a sink's, is too large.", lag, LAG_LIMIT)

    def _alarm(
        self,
        name: str,
        description: str,
        metric: cloudwatch.IMetric,
        limit: float,
        *,
        below: bool = False,
        missing: cloudwatch.TreatMissingData = _FINE,
    ) -> None:
        """Add an alarm on a metric that is above the limit (with `below`: below it) for three periods in a row.

        A restart can exceed the limit for one period.
        """
        operator = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            name.title().replace("-", ""),
            alarm_name=f"{self.size.prefix}-{name}",
            alarm_description=description,
            metric=metric,
            threshold=limit,
            comparison_operator=operator.LESS_THAN_THRESHOLD if below else operator.GREATER_THAN_THRESHOLD,
            evaluation_periods=3,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        alarm.add_ok_action(actions.SnsAction(self.topic))
