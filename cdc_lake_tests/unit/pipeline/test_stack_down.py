"""Without a stack, definitions load, and every asset, check and sensor fails in seconds with "run `cdc-lake up`"."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
import pytest

from cdc_lake import profile
from cdc_lake.definitions import defs
from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline import component
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import STAGES
from cdc_lake_tests.fakes.dagster import QUIET, evaluate, fake_resources

PIPELINE = load("northwind")
CHECKS = {f"{each.check_key.asset_key.path[1]}:{each.check_key.name}": each for each in pipeline_checks.build(PIPELINE)}
SENSORS = {
    each.name: each
    for each in component.build(PIPELINE).sensors or ()
    if isinstance(each, dg.SensorDefinition) and not each.name.endswith(("_health", "_checks"))
}
BOUND_SECONDS = 10.0  # on a busy machine; one second and less on an idle one


@pytest.fixture(scope="module", autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a state folder without a started stack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDC_LAKE_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("CDC_LAKE_PROFILE", raising=False)
        for name in ("CDC_LAKE_POSTGRES_PASSWORD", "CDC_LAKE_S3_ACCESS_KEY", "CDC_LAKE_S3_SECRET_KEY"):
            patch.setenv(name, "")  # so that monkeypatch removes what the profile sets
        # Only calls of Connect are retried for some seconds, because `up` starts it last.
        patch.setattr("resources.connect.rest_client.UNREACHABLE_SECONDS", 0.5)
        yield


@pytest.fixture(scope="module")
def job(nowhere: None) -> dg.JobDefinition:  # noqa: ARG001 - it is set
    """Return the job of the real pipeline."""
    return defs().resolve_job_def("northwind")


@pytest.fixture(scope="module")
def resources(nowhere: None) -> Mapping[str, Any]:  # noqa: ARG001 - it is set
    """Return the real resources."""
    return {**profile.resolved(), "spark": profile.spark()}


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """Fail a test that takes longer than BOUND_SECONDS."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < BOUND_SECONDS


def lower_message(error: BaseException) -> str:
    """Return the message of an error in lower case."""
    return str(error).lower()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_fails_with_advice(job: dg.JobDefinition, stage: str) -> None:
    keys = [key for key in job.asset_layer.executable_asset_keys if key.path[1] == stage]
    assert keys
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, asset_selection=keys, raise_on_error=False, run_config=QUIET)
    failures = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert not result.success
    assert failures
    for failure in failures:
        assert failure is not None
        assert failure.cause is not None
        assert "run `cdc-lake up`" in failure.cause.message.lower()


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_fails_with_advice(resources: Mapping[str, Any], name: str) -> None:
    check = CHECKS[name]
    arguments = {each: resources[each] for each in check.required_resource_keys - {"io_manager"}}
    if name.endswith("totals_equal_source"):
        arguments["context"] = None  # the check fails before it reads it
    with pytest.raises(Exception, match="dc-lake up") as caught:
        evaluate(check, **arguments)
    assert "run `cdc-lake up`" in lower_message(caught.value)


@pytest.mark.parametrize("name", SENSORS)
def test_a_sensor_fails_with_advice(resources: Mapping[str, Any], name: str) -> None:
    sensor = SENSORS[name]
    bound_resources = fake_resources(**{each: resources[each] for each in sensor.required_resource_keys})
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance=instance, resources=bound_resources, sensor_name=name) as context,
        pytest.raises(Exception, match="dc-lake up") as caught,
    ):
        sensor(context)
    assert "run `cdc-lake up`" in lower_message(caught.value)


def test_spark_reports_missing_jars(job: dg.JobDefinition) -> None:  # noqa: ARG001 - the home is set
    spark = profile.resources()["spark"]
    with pytest.raises(Exception, match="dc-lake up") as caught:
        spark.session()
    assert "no folder with jars is configured" in str(caught.value)
