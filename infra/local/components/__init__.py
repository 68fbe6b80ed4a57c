"""The components of the embedded stack, in the order in which `status` shows them.

infra.local.stack starts and stops them.
"""

from __future__ import annotations

from infra.local.stack.component import Component


def all_components() -> tuple[Component, ...]:
    """Return one instance of each component, in the order of the data flow."""
    from infra.local.components.aws import AwsComponent  # noqa: PLC0415
    from infra.local.components.connect import ConnectComponent  # noqa: PLC0415
    from infra.local.components.kafka import KafkaComponent  # noqa: PLC0415
    from infra.local.components.postgres import PostgresComponent  # noqa: PLC0415
    from infra.local.components.s3 import S3Component  # noqa: PLC0415
    from infra.local.components.trino import TrinoComponent  # noqa: PLC0415

    return (
        PostgresComponent(),
        KafkaComponent(),
        ConnectComponent(),
        S3Component(),
        TrinoComponent(),
        AwsComponent(),
    )
