"""The price table and the assumed workloads: prices.yaml and workloads.yaml, checked.

Here: reading. Not here: what is multiplied with what (quantities.py).
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

PRICES = Path(__file__).parent / "prices.yaml"
WORKLOADS = Path(__file__).parent / "workloads.yaml"
Amount = Annotated[float, Field(ge=0)]
_Entry = TypeVar("_Entry", bound=BaseModel)


class PriceError(Exception):
    """A price or a workload is missing or can't be used; the message says which, and where it belongs."""


class Price(BaseModel):
    """A list price in dollars, and who says so since when."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    price: Annotated[float, Field(gt=0)]
    unit: str
    source: Annotated[str, Field(pattern="^https://aws.amazon.com/")]
    date: dt.date


class Workload(BaseModel):
    """A month of an environment, beyond its standing there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    acu: Annotated[Amount, Field(description="Of each instance of Aurora, on average.")]
    aurora_gb: Amount
    aurora_io_million: Amount
    changes_gb: Annotated[Amount, Field(description="Through Kafka: written once, read twice.")]
    partitions: Amount
    lake_gb: Amount
    puts_thousand: Amount
    gets_thousand: Amount
    spark_vcpu_hours: Annotated[Amount, Field(description="On EMR Serverless.")]
    spark_gb_hours: Amount
    extra_core_hours: Annotated[Amount, Field(description="Of nodes that the cluster adds.")]
    athena_tb: Amount
    nat_gb: Amount
    logs_gb: Amount
    authors: Annotated[int, Field(ge=0)]


class Prices:
    """Prices by name."""

    def __init__(self, entries: dict[str, Price]) -> None:
        self.entries = entries

    def of(self, name: str) -> Price:
        """The price of that name. Raises PriceError where there is none."""
        if name not in self.entries:
            raise PriceError(f"{PRICES} has no {name}: add its list price, its source and today's date")
        return self.entries[name]


def prices(file: Path = PRICES) -> Prices:
    """The price table. Raises PriceError."""
    return Prices(_read(file, Price))


def workload(name: str, file: Path = WORKLOADS) -> Workload:
    """What an environment is assumed to do. Raises PriceError."""
    found = _read(file, Workload)
    if name not in found:
        raise PriceError(f"{file} has no workload for {name}: add an entry with that name")
    return found[name]


def _read(file: Path, entry: type[_Entry]) -> dict[str, _Entry]:
    try:
        return TypeAdapter(dict[str, entry]).validate_python(  # type: ignore[valid-type]
            yaml.safe_load(file.read_text(encoding="utf-8"))
        )
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise PriceError(f"{file}: {faults}") from None
