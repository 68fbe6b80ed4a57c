"""Get the schema registry's location for contract and jobs, and decode Avro values for display."""

import logging

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.avro_records import UndecodableError
from cdc_lake.contract.source.schema_registry import RegistryLocation, readable
from cdc_lake.pipeline.pipeline import Pipeline
from resources.kafka.registry import Registry
from resources.kafka.resource import Kafka

log = logging.getLogger(__name__)


def registry_location(kafka: Kafka, pipeline: Pipeline) -> RegistryLocation | None:
    """Return the registry of a pipeline's schemas; None for a pipeline in JSON.

    Raises ContractError if the pipeline is in Avro and the deployment has no registry.
    """
    if pipeline.spec.stream.format == "json":
        return None
    if kafka.registry is None:
        raise ContractError(
            f"Cannot read the Avro topics of pipeline {pipeline.name}: the deployment has no schema registry. In the "
            "local profile run `cdc-lake setup`, then `cdc-lake up`; on AWS set CDC_LAKE_REGISTRY_URL."
        )
    return _location(kafka.registry)


def _location(registry: Registry) -> RegistryLocation:
    return RegistryLocation(registry.url, registry.header())


def decode_for_display(kafka: Kafka, value: bytes | None) -> bytes | None:
    """Return a record's value for display: an Avro value as JSON, any other value unchanged.

    Logs a warning and returns the value unchanged if it cannot be decoded, or if the registry does not answer.
    """
    if value is None or kafka.registry is None:
        return value
    try:
        return readable(value, _location(kafka.registry))
    except (UndecodableError, ContractError) as error:
        log.warning("Cannot decode a value, which is shown as it is stored: %s", error)
        return value
