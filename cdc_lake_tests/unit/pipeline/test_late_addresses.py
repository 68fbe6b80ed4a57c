"""A code location that was loaded before the first `cdc-lake up` finds the stack later, without a reload."""

from pathlib import Path

import dagster as dg
import pytest
from pydantic import SecretStr

from cdc_lake import profile, profile_local
from cdc_lake.definitions import defs
from cdc_lake.pipeline.assets import parallel_tables
from infra.errors import StackDown
from infra.local.stack.endpoints import Endpoints
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.local import LocalSpark

SECRETS = ("CDC_LAKE_POSTGRES_PASSWORD", "CDC_LAKE_S3_ACCESS_KEY", "CDC_LAKE_S3_SECRET_KEY")


class Stack:
    """The endpoints that `cdc-lake up` writes; none before `up()` was called."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._at: Endpoints | None = None

    def up(self, offset: int) -> None:
        """Start the stack on ports from `offset` on."""
        self._at = Endpoints(
            home=self._home,
            postgres_host="127.0.0.1",
            postgres_port=offset,
            postgres_user="postgres",
            postgres_password=SecretStr(f"pg-{offset}"),
            kafka_bootstrap=f"127.0.0.1:{offset + 1}",
            connect_url=f"http://127.0.0.1:{offset + 2}",
            connect_password=SecretStr(f"connect-{offset}"),
            connect_secrets_file=self._home / "connect.properties",
            s3_endpoint=f"http://127.0.0.1:{offset + 3}",
            s3_access_key=f"access-{offset}",
            s3_secret_key=SecretStr(f"secret-{offset}"),
            aws_endpoint=f"http://127.0.0.1:{offset + 4}",
            trino_url=f"http://127.0.0.1:{offset + 5}",
            java_home=self._home / f"java-{offset}",
            spark_jars=self._home / "jars",
        )

    def endpoints(self) -> Endpoints:
        """Replace `load_endpoints` of cdc_lake/profile_local.py."""
        if self._at is None:
            raise StackDown("never started")
        return self._at


@pytest.fixture
def unstarted_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack that was never started."""
    unstarted = Stack(tmp_path)
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.delenv("CDC_LAKE_PROFILE", raising=False)
    for name in SECRETS:
        monkeypatch.setenv(name, "")  # so that monkeypatch removes what the profile sets
    monkeypatch.setattr(profile_local, "load_endpoints", unstarted.endpoints)
    monkeypatch.setattr("resources.connect.rest_client.UNREACHABLE_SECONDS", 0.5)
    return unstarted


def test_the_connector_sensor_uses_the_current_address_of_connect(unstarted_stack: Stack) -> None:
    repository = defs().get_repository_def()  # once, as Dagster's code server does
    sensor = repository.get_sensor_def("northwind_connector")
    top = repository.get_top_level_resources()
    needed = {name: top[name] for name in sensor.required_resource_keys}

    def tick() -> str:
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=needed, sensor_name=sensor.name) as context,
            pytest.raises(Exception, match="dc-lake up") as caught,
        ):
            sensor.evaluate_tick(context)
        return str(caught.value)

    before = tick()
    assert "was never started" in before
    for port in (40_000, 41_000):  # a state folder that was removed and re-created has other ports
        unstarted_stack.up(port)
        message = tick()
        assert f"127.0.0.1:{port + 2}" in message
        assert "was never started" not in message


def test_an_asset_gets_current_addresses_and_keys(unstarted_stack: Stack) -> None:
    found: list[str] = []

    @dg.asset
    def probe(kafka: Kafka, postgres: Postgres, store: ObjectStore, spark: LocalSpark) -> None:
        keys = (store.access_key, store.secret_key, *spark.store.hadoop_secrets().values())
        found.append(" ".join(map(str, (kafka.bootstrap, postgres.password, *keys, Path(spark.java_home).name))))

    job = dg.Definitions(assets=[probe], resources=profile.run_resources()).resolve_implicit_global_asset_job_def()
    for port in (40_000, 41_000):
        unstarted_stack.up(port)
        with dg.DagsterInstance.ephemeral() as instance:
            assert job.execute_in_process(instance=instance).success
    assert found == [
        f"127.0.0.1:{port + 1} pg-{port} access-{port} secret-{port} access-{port} secret-{port} java-{port}"
        for port in (40_000, 41_000)
    ]


@pytest.mark.usefixtures("unstarted_stack")
def test_all_resources_of_the_code_location_are_resolved_late() -> None:
    resources = dict(defs().resources or {})
    for name in parallel_tables.RESOURCES:
        del resources[name]  # it has no address
    assert set(resources) == set(profile.resources())
    assert all(isinstance(resource, profile.ProfileResource) for resource in resources.values())


def test_unchanged_resources_are_created_once_and_secrets_are_set_each_time(
    unstarted_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tick of a sensor resolves each resource; re-creating all of them was a quarter of its work."""
    java_homes: list[Path] = []

    def options(java: Path, jars: Path) -> str:  # noqa: ARG001 - same signature as the original
        java_homes.append(java)
        return ""

    monkeypatch.setattr(profile_local, "java_options", options)
    for port in (42_000, 43_000):
        unstarted_stack.up(port)
        for _ in range(3):
            monkeypatch.setenv("CDC_LAKE_S3_ACCESS_KEY", "")
            assert profile.resolved()["store"].access_key == f"access-{port}"
    assert [java.name for java in java_homes] == ["java-42000", "java-43000"]
