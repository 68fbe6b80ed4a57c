"""Where everything lies in the bucket: the one place that spells a key."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError

# 20 digits hold any 64-bit offset, so keys sort as offsets do.
_DIGITS = 20
_PART = r"(?!\.{1,2}/)[A-Za-z0-9._-]+"
_OBJECT = re.compile(
    rf"raw/(?P<pipeline>{_PART})/(?P<topic>{_PART})/(?P<fields>(?:[^/=]+=[^/]*/)*)partition=(?P<partition>0|[1-9]\d*)/"
    r"(?P=topic)\+(?P=partition)\+(?P<first>\d{20})\+(?P<last>\d{20})\.(?P<ext>[a-z0-9.]+)",
    re.ASCII,
)
_GENERATION = re.compile(r"(?:chain=(?P<chain>[A-Za-z0-9]+)/)?(?:epoch=(?P<epoch>[1-9]\d*)/)?", re.ASCII)
_MANIFEST = re.compile(r"(?:chain=[A-Za-z0-9]+/)?(\d{20})\.json", re.ASCII)
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ObjectName:
    """A raw object's name: one contiguous offset range, first and last record's offset, of one partition.

    From epoch 1 on the epoch is part of it: a topic that was made again has the same offsets anew. So is the chain,
    except for the pipeline's first one (contract/objects/chain_id.py).
    """

    pipeline: str
    topic: str
    partition: int
    first: int
    last: int
    extension: str
    epoch: int = 0
    chain: str = ""

    @property
    def key(self) -> str:
        """`raw/<pipeline>/<topic>/[chain=<id>/][epoch=<n>/]partition=<p>/<topic>+<p>+<first>+<last>.<ext>`."""
        epoch = f"epoch={self.epoch}/" if self.epoch else ""
        return (
            f"{topic_prefix(self.pipeline, self.topic)}{_chain_folder(self.chain)}{epoch}partition={self.partition}/"
            f"{self.topic}+{self.partition}+{self.first:0{_DIGITS}d}+{self.last:0{_DIGITS}d}.{self.extension}"
        )

    @classmethod
    def parse(cls, key: str) -> ObjectName | None:
        """The name behind a key, or None where the key is not a raw object's."""
        found = _OBJECT.fullmatch(key)
        if found is None:
            return None
        generation = _GENERATION.match(found["fields"])
        epoch, chain = (generation["epoch"], generation["chain"]) if generation else (None, None)
        return cls(
            found["pipeline"],
            found["topic"],
            int(found["partition"]),
            int(found["first"]),
            int(found["last"]),
            found["ext"],
            int(epoch or 0),
            chain or "",
        )


def require_safe(part: str, what: str) -> str:
    """A part of a key as it is; raises ContractError where it could leave its prefix."""
    if not _SAFE.fullmatch(part) or part in {".", ".."}:
        raise ContractError(
            f"{what} {part!r} can't be part of an object's key: use letters, digits, '.', '_' and '-' only"
        )
    return part


def pipeline_prefix(pipeline: str) -> str:
    """All that landing keeps of one pipeline."""
    return f"raw/{require_safe(pipeline, 'pipeline')}/"


def topic_prefix(pipeline: str, topic: str) -> str:
    """The raw objects and manifests of one topic."""
    return f"{pipeline_prefix(pipeline)}{require_safe(topic, 'topic')}/"


def manifest_prefix(pipeline: str, topic: str, chain: str = "") -> str:
    """The manifests of one topic: of one chain, or those of the first one with all later chains below it."""
    return f"{topic_prefix(pipeline, topic)}_manifests/{_chain_folder(chain)}"


def manifest_key(pipeline: str, topic: str, number: int, chain: str = "") -> str:
    """The key of manifest `number`, the first being 1."""
    return f"{manifest_prefix(pipeline, topic, chain)}{number:0{_DIGITS}d}.json"


def manifest_number(key: str) -> int | None:
    """The number of the manifest that a key names; None for another object, such as a put's temporary file."""
    found = _MANIFEST.fullmatch(key.rpartition("/_manifests/")[2])
    return None if found is None else int(found[1])


def chain_key(pipeline: str) -> str:
    """Which manifest chain is a pipeline's current one; beside its objects, so that a reset keeps it."""
    return f"chains/{require_safe(pipeline, 'pipeline')}.json"


def _chain_folder(chain: str) -> str:
    return f"chain={require_safe(chain, 'chain')}/" if chain else ""


def sink_prefix(pipeline: str) -> str:
    """Where a sink connector writes, unless its pipeline says otherwise."""
    return f"{pipeline_prefix(pipeline)}_sink/"


def schema_prefix(pipeline: str, table: str) -> str:
    """The captured schema versions of one source table (`schema.table`)."""
    return f"{pipeline_prefix(pipeline)}_schemas/{require_safe(table, 'table')}/"


def epoch_prefix(pipeline: str) -> str:
    """The epochs of one pipeline."""
    return f"{pipeline_prefix(pipeline)}_epochs/"


def epoch_key(pipeline: str, number: int, part: str = "") -> str:
    """The key of an epoch's beginning, or of what was found of it later: `complete`, `broken`."""
    return f"{epoch_prefix(pipeline)}{number:06d}{f'.{part}' if part else ''}.json"


def stage_state_key(pipeline: str, stage: str, name: str) -> str:
    """What a stage noted of one of its assets (contract/objects/stage_state.py)."""
    return f"{pipeline_prefix(pipeline)}_notes/{require_safe(stage, 'stage')}/{require_safe(name, 'asset')}.json"


def pending_key(pipeline: str, table: str) -> str:
    """How often in a row keys of a lake table could not be compared (contract/table/pending_counts.py)."""
    return f"{pipeline_prefix(pipeline)}_pending/{require_safe(table, 'table')}.json"


def continuity_key(pipeline: str) -> str:
    """How far the stream of a pipeline was seen to be whole."""
    return f"{pipeline_prefix(pipeline)}_continuity.json"


def dead_letter_prefix(pipeline: str) -> str:
    """Records that could not be read, of one pipeline."""
    return f"dlq/{require_safe(pipeline, 'pipeline')}/"


def closed_letter_prefix(pipeline: str) -> str:
    """Dead letters that were replayed or dropped, of one pipeline."""
    return f"dlq-closed/{require_safe(pipeline, 'pipeline')}/"


def lake_prefix(pipeline: str, table: str | None = None) -> str:
    """One Hudi table, or all of a pipeline's."""
    base = f"lake/{require_safe(pipeline, 'pipeline')}/"
    return base if table is None else f"{base}{require_safe(table, 'table')}/"


def pipeline_of(table_prefix: str) -> str:
    """The pipeline of a Hudi table's prefix."""
    return table_prefix.split("/")[1]


def lease_key(pipeline: str, table: str) -> str:
    """The lease that fences the writers of one table; beside the tables, so that a reset keeps it last."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/{require_safe(table, 'table')}.json"


def resnapshot_lease_key(pipeline: str) -> str:
    """The lease that keeps two resnapshots of a pipeline apart."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_resnapshot/pipeline.json"


def landing_lease_key(pipeline: str, topic: str) -> str:
    """The lease that keeps one topic's landing and a reset of its pipeline apart."""
    return f"leases/{require_safe(pipeline, 'pipeline')}/_landing/{require_safe(topic, 'topic')}.json"
