"""Logs of runs on AWS with infra/aws/image/dagster.yaml: one task writes them, another shows them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster_aws.s3.compute_log_manager import S3ComputeLogManager

import infra.aws
from cdc_lake_tests.fakes.aws.s3 import served_s3

IMAGE = Path(str(infra.aws.__file__)).parent / "image"


def test_the_web_server_shows_the_output_of_a_run_in_another_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "CDC_LAKE_WORK_BUCKET": "work",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)

    @dg.asset
    def printing_asset() -> None:
        print("17 rows landed")

    logs = yaml.safe_load((IMAGE / "dagster.yaml").read_text())["compute_logs"]
    with served_s3() as s3:
        on_task = {**logs["config"], "endpoint_url": s3.url, "local_dir": str(tmp_path / "code")}
        with dg.instance_for_test(overrides={"compute_logs": {**logs, "config": on_task}}) as instance:
            assert isinstance(instance.compute_log_manager, S3ComputeLogManager)
            result = dg.materialize([printing_asset], instance=instance)
            [event] = [each for each in result.all_events if each.event_type == dg.DagsterEventType.LOGS_CAPTURED]
        [key] = [key for key in s3.objects if key.endswith(".out")]
        assert key.startswith(f"work/dagster-logs/storage/{result.run_id}/")
        on_other_task = {**on_task, "local_dir": str(tmp_path / "webserver")}
        with dg.instance_for_test(overrides={"compute_logs": {**logs, "config": on_other_task}}) as instance:
            shown = instance.compute_log_manager.get_log_data(
                [result.run_id, "compute_logs", event.logs_captured_data.file_key]
            )
    assert shown.stdout == b"17 rows landed\n"
