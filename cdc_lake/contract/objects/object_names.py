"""The keys and prefixes of objects in the bucket.

Other modules only append names to a prefix. The keys of sink connectors' objects are in
cdc_lake/contract/sinks/sink_names.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import hive_partitions

# 20 digits hold any 64-bit offset, so keys sort as offsets do.
_DIGITS = 20
_PART = r"(?!\.{1,2}/)[A-Za-z0-9._-]+"
_OBJECT = re.compile(
    rf"raw/(?P<pipeline>{_PART})/(?P<topic>{_PART})/(?P<fields>(?:[^/=]+=[^/]*/)*)partition=(?P<partition>0|[1-9]\d*)/"
    r"(?P=topic)\+(?P=partition)\+(?P<first>\d{20})\+(?P<last>\d{20})\.(?P<ext>[a-z0-9.]+)",
    re.ASCII,
)
_CHAIN_AND_EPOCH = re.compile(r"(?:chain=(?P<chain>[A-Za-z0-9]+)/)?(?:epoch=(?P<epoch>[1-9]\d*)/)?", re.ASCII)
_MANIFEST = re.compile(r"(?:chain=[A-Za-z0-9]+/)?(\d{20})\.json", re.ASCII)
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ObjectName:
    """A raw object's name: one partition, and the offsets of the first and last record.

    From epoch 1 on, the key contains the epoch, because a re-created topic has the same offsets again. It also contains
    the chain's id, except for the pipeline's first chain (contract/objects/chain_id.py). `fields` are the folders of
    `landing.partition_by` (contract/objects/hive_partitions.py), whose values all records of the object have.
    """

    pipeline: str
    topic: str
    partition: int
    first: int
    last: int
    extension: str
    epoch: int = 0
    chain: str = ""
    fields: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`raw/<pipeline>/<topic>/[chain=<id>/][epoch=<n>/][<field>=<value>/…]partition=<p>/<name>.<ext>`.

        The name is `<topic>+<p>+<first>+<last>`.
        """
        name = f"{self.topic}+{self.partition}+{self.first:0{_DIGITS}d}+{self.last:0{_DIGITS}d}"
        return f"{self.prefix}{name}.{self.extension}"

    @property
    def prefix(self) -> str:
        """The part of the key before its name, with a slash at the end."""
        return partition_prefix(self.pipeline, self.topic, self.partition, self.epoch, self.chain, self.fields)

    @classmethod
    def parse(cls, key: str) -> ObjectName | None:
        """Parse a key; None if it is not the key of a raw object."""
        found = _OBJECT.fullmatch(key)
        if found is None:
            return None
        begin = _CHAIN_AND_EPOCH.match(found["fields"])
        epoch, chain = (begin["epoch"], begin["chain"]) if begin else (None, None)
        fields = found["fields"][begin.end() if begin else 0 :]
        return cls(
            found["pipeline"],
            found["topic"],
            int(found["partition"]),
            int(found["first"]),
            int(found["last"]),
            found["ext"],
            int(epoch or 0),
            chain or "",
            tuple(fields.split("/")[:-1]),
        )

    def values(self) -> dict[str, str | None]:
        """Return the value of each field of `fields`."""
        return dict(map(hive_partitions.parse, self.fields))


def require_safe(part: str, what: str) -> str:
    """Return a part of a key unchanged. Raises ContractError for a part that could make the key leave its prefix."""
    if not _SAFE.fullmatch(part) or part in {".", ".."}:
        raise ContractError(
            f"Cannot use {what} {part!r} in an object's key: only letters, digits, '.', '_' and '-' are allowed. "
            "Rename it."
        )
    return part


def pipeline_prefix(pipeline: str) -> str:
    """Return the prefix of all objects of a pipeline below raw/."""
    return f"raw/{require_safe(pipeline, 'pipeline')}/"


def topic_prefix(pipeline: str, topic: str) -> str:
    """Return the prefix of the raw objects and manifests of one topic."""
    return f"{pipeline_prefix(pipeline)}{require_safe(topic, 'topic')}/"


def manifest_prefix(pipeline: str, topic: str, chain: str = "") -> str:
    """Return the prefix of a chain's manifests; the first chain's prefix contains those of all later chains."""
    return f"{topic_prefix(pipeline, topic)}_manifests/{_chain_folder(chain)}"


def epoch_objects_prefix(pipeline: str, topic: str, epoch: int = 0, chain: str = "") -> str:
    """Return the prefix of the raw objects of a topic in one epoch and chain.

    The prefix of epoch 0 also contains the objects of later epochs. For the first chain it is the topic's prefix, so
    that it contains manifests and later chains too.
    """
    return f"{topic_prefix(pipeline, topic)}{_chain_folder(chain)}{f'epoch={epoch}/' if epoch else ''}"


def partition_prefix(
    pipeline: str, topic: str, partition: int, epoch: int = 0, chain: str = "", fields: Sequence[str] = ()
) -> str:
    """Return the prefix of the raw objects of one partition of a topic, in one epoch and chain.

    `fields` are the folders of landing.partition_by.
    """
    folders = "".join(f"{field}/" for field in fields)
    return f"{epoch_objects_prefix(pipeline, topic, epoch, chain)}{folders}partition={partition}/"


def listing_start(
    pipeline: str, topic: str, partition: int, first: int, epoch: int = 0, chain: str = "", fields: Sequence[str] = ()
) -> str:
    """Return the start of a listing of a partition's objects from offset `first` on.

    The text sorts before the keys of these objects, and after the keys of the partition's earlier objects.
    """
    folder = partition_prefix(pipeline, topic, partition, epoch, chain, fields)
    return f"{folder}{topic}+{partition}+{first:0{_DIGITS}d}"


def refined_prefix(pipeline: str, dataset: str | None = None, build: str | None = None) -> str:
    """Return the prefix of one build of a refined table, of all its builds, or of all refined tables of a pipeline."""
    parts = (("dataset", dataset), ("build", build))
    base = f"refined/{require_safe(pipeline, 'pipeline')}/"
    return base + "".join(f"{require_safe(part, what)}/" for what, part in parts if part is not None)


def manifest_key(pipeline: str, topic: str, number: int, chain: str = "") -> str:
    """Return the key of manifest `number`, from 1."""
    return f"{manifest_prefix(pipeline, topic, chain)}{number:0{_DIGITS}d}.json"


def manifest_number(key: str) -> int | None:
    """Return the number in a manifest's key; None for another object, such as a put's temporary file."""
    found = _MANIFEST.fullmatch(key.rpartition("/_manifests/")[2])
    return None if found is None else int(found[1])


def chain_key(pipeline: str) -> str:
    """Return the key of the current chain's id. It is not below the pipeline's prefix, so that a reset keeps it."""
    return f"chains/{require_safe(pipeline, 'pipeline')}.json"


def _chain_folder(chain: str) -> str:
    return f"chain={require_safe(chain, 'chain')}/" if chain else ""


def sink_prefix(pipeline: str) -> str:
    """Return the default prefix of a sink connector's objects."""
    return f"{pipeline_prefix(pipeline)}_sink/"


def schema_prefix(pipeline: str, table: str) -> str:
    """Return the prefix of the captured schema versions of one source table (`schema.table`)."""
    return f"{pipeline_prefix(pipeline)}_schemas/{require_safe(table, 'table')}/"


def epoch_prefix(pipeline: str) -> str:
    """Return the prefix of a pipeline's epochs."""
    return f"{pipeline_prefix(pipeline)}_epochs/"


def epoch_key(pipeline: str, number: int, part: str = "") -> str:
    """Return the key of an epoch, or of one of its later states, such as `complete` or `broken`."""
    return f"{epoch_prefix(pipeline)}{number:06d}{f'.{part}' if part else ''}.json"


def stage_state_key(pipeline: str, stage: str, name: str) -> str:
    """Return the key of the state that a stage stores for one of its assets (contract/objects/stage_state.py)."""
    return f"{pipeline_prefix(pipeline)}_notes/{require_safe(stage, 'stage')}/{require_safe(name, 'asset')}.json"


def pending_counts_key(pipeline: str, table: str) -> str:
    """Return the key of a lake table's pending counts (contract/table/pending_counts.py)."""
    return f"{pipeline_prefix(pipeline)}_pending/{require_safe(table, 'table')}.json"


def stream_progress_key(pipeline: str) -> str:
    """Return the key of a pipeline's stream progress (contract/source/stream_progress.py)."""
    return f"{pipeline_prefix(pipeline)}_continuity.json"


def poll_state_key(pipeline: str, table: str) -> str:
    """Return the key of the state of polling a table (contract/source/poll_state.py)."""
    return f"{pipeline_prefix(pipeline)}_polls/{require_safe(table, 'table')}.json"


def dead_letter_prefix(pipeline: str) -> str:
    """Return the prefix of a pipeline's open dead letters."""
    return f"dlq/{require_safe(pipeline, 'pipeline')}/"


def closed_letter_prefix(pipeline: str) -> str:
    """Return the prefix of a pipeline's closed dead letters: replayed, superseded or dropped."""
    return f"dlq-closed/{require_safe(pipeline, 'pipeline')}/"


def lake_prefix(pipeline: str, table: str | None = None) -> str:
    """Return the prefix of one Hudi table, or of all tables of a pipeline."""
    base = f"lake/{require_safe(pipeline, 'pipeline')}/"
    return base if table is None else f"{base}{require_safe(table, 'table')}/"


def pipeline_of(table_prefix: str) -> str:
    """Return the pipeline's name in a Hudi table's prefix, or in a key below it."""
    return table_prefix.split("/")[1]


def lease_key(pipeline: str, table: str) -> str:
    """Return the key of a table's writer lease. It is not below the lake's prefix, so that a reset keeps it."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/{require_safe(table, 'table')}.json"


def resnapshot_lease_key(pipeline: str) -> str:
    """Return the key of the lease that excludes concurrent resnapshots of a pipeline."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_resnapshot/pipeline.json"


def continuous_lease_key(pipeline: str) -> str:
    """Return the key of the lease of the process that runs a pipeline continuously."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_continuous/pipeline.json"


def dataset_lease_key(pipeline: str, name: str) -> str:
    """Return the key of the lease that excludes concurrent builds of a refined table."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_dataset/{require_safe(name, 'dataset')}.json"


def poll_lease_key(pipeline: str, table: str) -> str:
    """Return the key of the lease that excludes concurrent polls of a table, and polls during a reset."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_poll/{require_safe(table, 'table')}.json"


def landing_lease_key(pipeline: str, topic: str) -> str:
    """Return the key of the lease that excludes concurrent landings of a topic, and landings during a reset."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_landing/{require_safe(topic, 'topic')}.json"
