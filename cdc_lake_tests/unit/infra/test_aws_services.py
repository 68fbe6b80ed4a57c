"""The settings that the local endpoint gives each Spark job, whatever the request says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from infra.local.aws_endpoint import services
from infra.local.aws_endpoint.engine import Trino


def test_jobs_run_in_utc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(services, "java_home", lambda _release: tmp_path)
    monkeypatch.setattr(services, "jars", lambda _name: tmp_path)
    monkeypatch.setattr(services, "java_options", lambda _java, _folder: "-Xshare:auto")
    names = "region url connect_url kafka_bootstrap kafka_cluster s3_endpoint access_key secret_key connect_password"
    address: dict[str, Any] = dict.fromkeys(names.split(), "none")
    engines = services.Engines(state=tmp_path, trino=cast(Trino, None), s3=None, **address)
    options = services._spark(engines).settings["spark.driver.extraJavaOptions"].split()
    assert {"-Duser.timezone=UTC", "-Xshare:auto"} <= set(options)
