"""The components of the local stack, in the order in which `status` shows them.

infra.local.stack starts and stops them.
"""

from __future__ import annotations

from infra.local.stack.component import Component

REGISTRY = "registry"
OPTIONAL = frozenset({REGISTRY})
"""Components that start only if a pipeline needs them."""


def all_components() -> tuple[Component, ...]:
    """Return one instance of each component, in the order of the data flow."""
    from infra.local.components.aws import AwsComponent  # noqa: PLC0415
    from infra.local.components.connect import ConnectComponent  # noqa: PLC0415
    from infra.local.components.kafka import KafkaComponent  # noqa: PLC0415
    from infra.local.components.postgres import PostgresComponent  # noqa: PLC0415
    from infra.local.components.registry import RegistryComponent  # noqa: PLC0415
    from infra.local.components.s3 import S3Component  # noqa: PLC0415
    from infra.local.components.trino import TrinoComponent  # noqa: PLC0415

    return (
        PostgresComponent(),
        KafkaComponent(),
        RegistryComponent(),
        ConnectComponent(),
        S3Component(),
        TrinoComponent(),
        AwsComponent(),
    )


def needed_components(*, registry: bool) -> list[str]:
    """Return the names of the components that pipelines need, for `Stack.up`; `registry`: one of them uses Avro."""
    names = [component.name for component in all_components() if component.name not in OPTIONAL]
    return [*names, REGISTRY] if registry else names
