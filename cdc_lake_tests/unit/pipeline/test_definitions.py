"""The real definitions, loaded without a stack: content, descriptions and owners, and no secrets in them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster.components.core.load_defs import PLUGIN_COMPONENT_TYPES_JSON_METADATA_KEY
from dagster_shared.serdes import serialize_value
from pydantic import SecretStr
from syrupy.assertion import SnapshotAssertion

from cdc_lake import profile, profile_local
from cdc_lake.definitions import defs
from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.component import CdcPipeline
from cdc_lake.pipeline.loading import load, names
from infra.local.stack.endpoints import Endpoints
from resources.aws.sqs import Sqs
from resources.errors import ResourceError

SECRETS = (
    "CDC_LAKE_POSTGRES_PASSWORD",
    "CDC_LAKE_CONNECT_PASSWORD",
    "CDC_LAKE_S3_ACCESS_KEY",
    "CDC_LAKE_S3_SECRET_KEY",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder without a started stack."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("CDC_LAKE_HOME", str(folder))
        patch.delenv("CDC_LAKE_PROFILE", raising=False)
        for name in SECRETS:
            patch.setenv(name, "")  # so that monkeypatch removes what the profile sets
        yield folder


@pytest.fixture(scope="module")
def repository(home: Path) -> dg.RepositoryDefinition:  # noqa: ARG001 - it sets CDC_LAKE_HOME
    """Return the repository of the code location."""
    found: dg.RepositoryDefinition = defs().get_repository_def()
    return found


def name(key: dg.AssetKey) -> str:
    """Return `pipeline/stage/name`."""
    return "/".join(key.path)


def check_name(key: dg.AssetCheckKey) -> str:
    """Return `pipeline/stage/name:check`."""
    return f"{name(key.asset_key)}:{key.name}"


def selected(job: dg.JobDefinition) -> list[str]:
    """Return the names of the assets and checks that a job runs."""
    layer = job.asset_layer
    return sorted([*map(name, layer.executable_asset_keys), *map(check_name, layer.asset_graph.asset_check_keys)])


def tier(spec: dg.AssetCheckSpec) -> str:
    """Return the tier of a check and its marks (blocking, lateness)."""
    marks = [spec.metadata.get("tier", "light"), *(["blocking"] if spec.blocking else [])]
    return ", ".join([*marks, *(["lateness"] if spec.metadata.get(tiers.FAILURE_MEANS) == "lateness" else [])])


def test_assets_checks_jobs_and_sensors_match_the_snapshot(
    repository: dg.RepositoryDefinition, snapshot: SnapshotAssertion
) -> None:
    graph = repository.asset_graph
    nodes = sorted((graph.get(key) for key in graph.get_all_asset_keys()), key=lambda node: tuple(node.key.path))
    assert {
        "assets": {
            name(node.key): {
                "kinds": sorted(node.kinds),
                "group": node.group_name,
                "owners": list(node.owners),
                "deps": sorted(name(key) for key in node.parent_keys),
                "pools": sorted(node.pools or ()),
                "tags": dict(node.tags),
            }
            for node in nodes
        },
        "checks": {check_name(key): tier(graph.get_check_spec(key)) for key in sorted(graph.asset_check_keys)},
        "jobs": {job.name: selected(job) for job in repository.get_all_jobs() if not job.name.startswith("__")},
        "sensors": {
            each.name: {"status": str(each.default_status.value), "jobs": sorted(to.job_name for to in each.targets)}
            for each in repository.sensor_defs
        },
        "schedules": [each.name for each in repository.schedule_defs],
    } == snapshot


def test_a_request_that_names_checks_runs_no_others(repository: dg.RepositoryDefinition) -> None:
    """The daemon adds all checks of any tier to a request that names only assets."""
    pipeline = load("northwind")
    lake = pipeline.tables[0].key("lake")
    request = Jobs(pipeline, pipeline_checks.build(pipeline)).apply.only(lake).request("key", {})
    job = repository.get_job(str(request.job_name))
    named = job.get_subset(
        asset_selection=set(request.asset_selection or ()), asset_check_selection=set(request.asset_check_keys or ())
    )
    assert selected(named) == ["northwind/lake/cdc_events_lake", "northwind/lake/cdc_events_lake:watermark_fresh"]
    unnamed = job.get_subset(asset_selection=set(request.asset_selection or ()))
    assert "northwind/lake/cdc_events_lake:equals_source" in selected(unnamed)


def test_every_asset_has_description_owner_and_freshness_policy(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    assert graph.get_all_asset_keys()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, key
        assert node.kinds, key
        assert node.group_name == f"{key.path[0]}{'_maintenance' if key.path[1] == 'maintenance' else ''}", key
        assert node.owners, key
        assert isinstance(node.freshness_policy, dg.FreshnessPolicy), key


def test_every_check_sensor_and_job_has_a_description(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    assert graph.asset_check_keys
    for key in graph.asset_check_keys:
        assert graph.get_check_spec(key).description, key
    assert [each.name for each in repository.sensor_defs if not each.description] == []
    assert [
        each.name for each in repository.get_all_jobs() if not (each.description or each.name.startswith("__"))
    ] == []


def test_every_stage_except_dashboards_and_maintenance_has_a_check(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    checked = {key.asset_key for key in graph.asset_check_keys}
    assert {name(key) for key in graph.get_all_asset_keys() - checked} == {
        name(key) for key in graph.get_all_asset_keys() if key.path[1] in {"dashboard", "maintenance"}
    }


def test_steps_run_in_one_process(home: Path) -> None:  # noqa: ARG001 - it sets CDC_LAKE_HOME
    assert defs().executor is dg.in_process_executor


def test_only_pipeline_components_are_loaded(repository: dg.RepositoryDefinition) -> None:
    """Describing the component types of every installed package would cost each run half a second."""
    assert repository.metadata is not None
    assert PLUGIN_COMPONENT_TYPES_JSON_METADATA_KEY not in repository.metadata
    assert len(defs().component_tree.get_all_components(CdcPipeline)) == len(names())


def test_building_the_pipelines_emits_no_beta_warning(home: Path) -> None:  # noqa: ARG001 - it sets CDC_LAKE_HOME
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        defs()
    assert [each for each in caught if each.category is dg.BetaWarning] == []


def test_a_profile_with_a_queue_adds_the_raw_events_sensor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it sets CDC_LAKE_HOME
    local = profile.resources()
    assert not defs().get_repository_def().has_sensor_def("raw_events")
    monkeypatch.setattr(profile, "resources", lambda: {**local, "queue": Sqs(queue_url="https://sqs/1/events")})
    found = defs().get_repository_def()
    assert found.has_sensor_def("raw_events")
    assert found.get_sensor_def("northwind_apply").minimum_interval_seconds == 60


def test_an_unknown_profile_is_rejected(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it sets CDC_LAKE_HOME
    monkeypatch.setenv("CDC_LAKE_PROFILE", "azure")
    with pytest.raises(ResourceError, match=r"'azure' of CDC_LAKE_PROFILE: .*\. Set the variable to local or aws"):
        profile.resources()


PASSWORD, CONNECT, ACCESS, SECRET = "pg-pa55word", "c0nnect-pa55word", "s3-acc355", "s3-53cret"


@pytest.fixture
def started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints of a stack that was started once; no server listens on them."""
    nowhere = "http://127.0.0.1:9"
    found = Endpoints(
        home=home,
        postgres_host="127.0.0.1",
        postgres_port=9,
        postgres_user="postgres",
        postgres_password=SecretStr(PASSWORD),
        kafka_bootstrap="127.0.0.1:9",
        connect_url=nowhere,
        connect_password=SecretStr(CONNECT),
        connect_secrets_file=home / "connect.properties",
        s3_endpoint=nowhere,
        s3_access_key=ACCESS,
        s3_secret_key=SecretStr(SECRET),
        aws_endpoint=nowhere,
        trino_url=nowhere,
        java_home=home,
        spark_jars=home,
    )
    monkeypatch.setattr(profile_local, "load_endpoints", lambda: found)


@pytest.mark.usefixtures("started")
def test_secrets_are_in_no_snapshot_run_or_event() -> None:
    definitions = defs()
    repository_snapshot = serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))
    assert all(f'"{name}"' in repository_snapshot for name in profile.resources())
    job = definitions.resolve_job_def("northwind")
    with dg.DagsterInstance.ephemeral() as instance:
        source = [key for key in job.asset_layer.executable_asset_keys if key.path[1] == "source"]
        result = job.execute_in_process(instance=instance, asset_selection=source, raise_on_error=False)
        events = instance.all_logs(result.run_id)
        run = instance.get_run_by_id(result.run_id)
    assert not result.success
    everything = repository_snapshot + json.dumps([serialize_value(event) for event in events]) + serialize_value(run)
    assert "the object store at http://127.0.0.1:9 does not answer" in everything
    assert [value for value in (PASSWORD, CONNECT, ACCESS, SECRET) if value in everything] == []


@pytest.mark.usefixtures("started")
def test_resolved_resources_contain_the_secrets_but_do_not_print_them() -> None:
    found = profile.resolved()
    assert "spark" not in found
    assert (found["postgres"].password, found["store"].secret_key) == (PASSWORD, SECRET)
    assert found["connect"].password == CONNECT
    assert not any(secret in repr(found) for secret in (PASSWORD, CONNECT))
    assert SECRET not in repr(found)
