"""The fields of a pipeline's YAML that describe the topics and the raw objects."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.parquet_file import Compression
from cdc_lake.contract.sinks.sink_names import Layout
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.landing.raw_formats import LandingFormat, StreamFormat
from cdc_lake.pipeline.spec.field_types import Count, Identifier, Identifiers, matching
from cdc_lake.yaml_model import YamlModel, field_error


class StreamSpec(YamlModel):
    """The Kafka topics: the prefix of their names, their partitions, and the format of their records."""

    prefix: Identifier = Field(description="the first part of the topics' names")
    partitions: Annotated[Count, Field(le=64)] = Field(default=1, description="partitions of a topic, 1 to 64")
    format: StreamFormat = Field(default="json", description="json, or avro with the schemas in a registry")
    registry: Literal["apicurio", "confluent"] | None = Field(
        default=None, description="apicurio or confluent: whose converter writes Avro; the deployment has its URL"
    )

    @model_validator(mode="after")
    def _registry_for_avro(self) -> Self:
        if self.format == "avro" and self.registry is None:
            raise field_error(type(self).__name__, "registry", None, "name it, apicurio or confluent, for format avro")
        if self.format == "json" and self.registry is not None:
            raise field_error(type(self).__name__, "registry", None, "only valid with format: avro; remove it")
        return self


class SinkSpec(YamlModel):
    """The S3 sink connector that writes a pipeline's raw objects instead of the land job."""

    layout: Layout = Field(description="lenses, lenses_by_field, confluent or aiven")
    prefix: Annotated[
        str,
        matching(
            r"raw/[A-Za-z0-9._/-]+",
            "use the connector's own prefix, below raw/, of letters, digits, '.', '_', '-' and '/'",
        ),
    ] = Field(default="", description="the connector's prefix; raw/<pipeline>/_sink/ if it is left out")
    envelope: bool = Field(
        default=False, strict=True, description="true if each line also contains the record's offset"
    )

    @model_validator(mode="after")
    def _valid_envelope(self) -> Self:
        try:
            Sink(self.layout, self.prefix, self.envelope)
        except ContractError as error:
            raise field_error(type(self).__name__, "envelope", self.envelope, error.user_message) from None
        return self


def _not_in_object_keys(names: list[str]) -> list[str]:
    if own := sorted({"chain", "epoch", "partition"} & set(names)):
        raise ValueError(f"name other columns: {own[0]}= is a folder in the keys of all raw objects")
    return names


class LandingFields(YamlModel):
    """The fields of `landing` that a table can override."""

    format: LandingFormat = Field(
        default="json", description="json (lines), avro (object container files) or parquet (typed rows)"
    )
    compression: Compression | None = Field(
        default=None, description="gzip, snappy or zstd, with format: parquet; gzip if it is left out"
    )
    flush_seconds: Count = Field(default=60, description="land waiting records after this many seconds")
    flush_records: Count = Field(default=50, description="land as soon as this many records are waiting")
    partition_by: Annotated[Identifiers, AfterValidator(_not_in_object_keys)] = Field(
        default_factory=list,
        description="columns whose values are folders in the keys of raw objects; an object has one value of each",
    )


class LandingSpec(LandingFields):
    """When and how raw objects are written."""

    records_per_object: Count = Field(default=100_000, description="the largest number of records in one object")
    record_bytes: Annotated[Count, Field(le=64 * 2**20)] = Field(
        default=8 * 2**20, description="larger records become dead letters; in bytes, at most 64 MiB"
    )
    sink: SinkSpec | None = Field(default=None, description="a mapping with layout, prefix and envelope")

    @model_validator(mode="before")
    @classmethod
    def _default_compression(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("format") == "parquet":
            return {**given, "compression": given.get("compression") or "gzip"}
        return given

    @model_validator(mode="after")
    def _fields_of_format(self) -> Self:
        if self.compression is not None and self.format != "parquet":
            reason = "only valid with format: parquet; remove it"
            raise field_error(type(self).__name__, "compression", None, reason)
        if self.sink is not None and self.format == "parquet":
            reason = "a sink connector cannot write format: parquet, only the land job can; remove the sink"
            raise field_error(type(self).__name__, "sink", None, reason)
        if self.sink is not None and self.partition_by:
            reason = "not allowed with sink, whose connector decides the keys of its objects; remove it"
            raise field_error(type(self).__name__, "partition_by", None, reason)
        return self

    def with_overrides(self, own: LandingFields | None) -> LandingSpec:
        """Return the landing of a table: these fields, except those that the table's YAML sets.

        Another format does not inherit the compression. Raises pydantic's ValidationError.
        """
        if own is None:
            return self
        given = own.model_dump(exclude_unset=True)
        kept = self.model_dump(exclude_unset=True)
        if given.get("format", self.format) != self.format:
            kept.pop("compression", None)
        return LandingSpec.model_validate(kept | given)
