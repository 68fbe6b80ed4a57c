"""Returns the addresses and credentials of a stack's engines, for code outside infra/local/stack."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pydantic import SecretStr

from infra.artifacts.artifacts import jars
from infra.artifacts.java import java_home
from infra.errors import StackDown
from infra.local.components.connect import secrets_file
from infra.local.components.postgres import SUPERUSER
from infra.local.components.registry import authorization
from infra.local.stack.component import LOOPBACK
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.process import recorded
from infra.local.stack.stack_secrets import load
from infra.local.stack.stack_state import StateFile
from infra.local.stack.state_folder import find_home


def load_endpoints(home: Path | None = None) -> Endpoints:
    """Return the addresses and credentials of the stack in `home` (default: CDC_LAKE_HOME, else `.cdc-lake`).

    They stay the same after `down` and `up`, unless another process takes a port in between. This function does not
    check that the components run; `require_running` does.

    Raises StackDown if the stack was never started, or only by an earlier version; ArtifactsMissing before `setup`.
    """
    found = find_home(home)
    ports = StateFile(found.state_file).read().ports
    if not ports or not found.secrets_file.exists():
        raise StackDown(f"Cannot use the stack in {found.path}: it was never started. Run `cdc-lake up`.")
    secrets = load(found.secrets_file)
    header = authorization(found.path)
    return Endpoints(
        home=found.path,
        postgres_host=LOOPBACK,
        postgres_port=ports["postgres"],
        postgres_user=SUPERUSER,
        postgres_password=SecretStr(secrets.postgres_password),
        kafka_bootstrap=f"{LOOPBACK}:{ports['kafka']}",
        connect_url=f"http://{LOOPBACK}:{ports['connect']}",
        connect_password=SecretStr(secrets.connect_password),
        connect_secrets_file=secrets_file(found.path),
        registry_url=f"http://{LOOPBACK}:{ports['registry']}" if "registry" in ports else None,
        registry_authorization=SecretStr(header) if header else None,
        s3_endpoint=f"http://{LOOPBACK}:{ports['s3']}",
        s3_access_key=secrets.s3_access_key,
        s3_secret_key=SecretStr(secrets.s3_secret_key),
        aws_endpoint=f"http://{LOOPBACK}:{ports['aws']}",
        trino_url=f"http://{LOOPBACK}:{ports['trino']}",
        java_home=java_home(17),
        spark_jars=jars("spark"),
    )


def require_running(names: Collection[str], home: Path | None = None) -> None:
    """Check that the processes of these components are alive. Raises a StackDown that names the others."""
    found = find_home(home)
    processes = StateFile(found.state_file).read().processes
    down = [name for name in names if recorded(processes.get(name)) is None]
    if down:
        are = "is" if len(down) == 1 else "are"
        raise StackDown(
            f"Cannot use the stack in {found.path}: {', '.join(down)} {are} not running. Run `cdc-lake up`."
        )
