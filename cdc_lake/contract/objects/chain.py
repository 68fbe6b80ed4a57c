"""The manifest chain of one topic: the state from which landing resumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from pydantic import ValidationError

from cdc_lake.contract.errors import (
    ManifestGapError,
    ObjectDamagedError,
    RaceLostError,
    TopicRecreatedError,
    reset_advice,
)
from cdc_lake.contract.objects import chain_id, chain_marks, object_names
from cdc_lake.contract.objects.chain_marks import Mark
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epochs, Start

_RESTORE = "Restore the original manifests from a backup or from earlier object versions"


@dataclass(frozen=True)
class Chain:
    """The manifests 1, 2, … of one topic of one pipeline.

    `bound_to` is the id of a chain that the caller has read before. If it is None, the first use reads the id of the
    current chain, and keeps it.
    """

    store: ObjectStore
    pipeline: str
    topic: str
    bound_to: str | None = None

    @cached_property
    def id(self) -> str:
        """The chain's id, empty for the pipeline's first chain. Raises ObjectDamagedError."""
        return chain_id.current(self.store, self.pipeline) if self.bound_to is None else self.bound_to

    def read(self, number: int) -> Manifest:
        """Return one manifest. Raises ObjectDamagedError if it is missing or unreadable."""
        key = self.key(number)
        stored = self.store.get(key)
        if stored is None:
            raise ObjectDamagedError(
                f"Cannot read manifest {number} of topic {self.topic}: {key} is missing. Restore the object, or "
                f"{reset_advice(self.pipeline)}."
            )
        try:
            return Manifest.decode(stored.body)
        except ValidationError as error:
            raise ObjectDamagedError(
                f"Cannot read manifest {number} of topic {self.topic}: {key} is damaged: "
                f"{error.errors()[0]['msg'].removeprefix('Value error, ')}. Restore the object, or "
                f"{reset_advice(self.pipeline)}."
            ) from error

    def length(self, known: int | None = None) -> int:
        """Return the number of the newest manifest, 0 for an empty chain.

        Searches from `known` (default: the stored mark) with doubled, then halved strides, so that the number of
        requests is logarithmic in the number of new manifests. `known` may be a manifest that does not exist.
        Raises ManifestGapError if later manifests exist, but not the first one.
        """
        if known is None:
            mark = self.mark("counted")
            known = 0 if mark is None else mark.manifest
        low, stride = (known if known > 0 and self._exists(known) else 0), 1
        while self._exists(low + stride):
            low += stride
            stride *= 2
        while stride > 1:
            stride //= 2
            if self._exists(low + stride):
                low += stride
        if not low:
            self._require_none_after(0)
        return low

    def head(self, known: int | None = None) -> Manifest | None:
        """Return the newest manifest, None for an empty chain. Raises what length() and read() raise."""
        number = self.length(known)
        return self.read(number) if number else None

    def since(self, number: int, attempt: str | None = None) -> Iterator[Manifest]:
        """Yield the manifests after `number`, in order, each checked against its predecessor.

        `attempt` is the attempt of manifest `number` that the caller has applied. Raises ManifestGapError if the stored
        manifest belongs to another attempt, because it can cover other offsets, and what check_follows() raises.
        """
        before = self.read(number) if number else None
        if before is not None and attempt is not None and before.attempt != attempt:
            raise ManifestGapError(
                f"Cannot continue after manifest {number} of topic {self.topic}: attempt {attempt} was applied or "
                f"verified before, but the bucket now contains attempt {before.attempt}. Manifests were removed and "
                "landed again, or restored from another chain. Nothing was changed. Restore the earlier manifests, "
                f"or {reset_advice(self.pipeline)}."
            )
        for key, following in self._after(number):
            if key != self.key(following):
                continue
            manifest = self.read(following)
            self._require_own(manifest)
            check_follows(before, manifest, self._start(manifest))
            yield manifest
            before = manifest

    def append(self, manifest: Manifest) -> None:
        """Commit a manifest at the end of the chain.

        Raises RaceLostError if another attempt committed this number first, ManifestGapError if later manifests exist
        but not this one, and what check_follows() raises.
        """
        self._require_own(manifest)
        before = self.read(manifest.number - 1) if manifest.number > 1 else None
        check_follows(before, manifest, self._start(manifest))
        self._require_none_after(manifest.number - 1)
        stored = put_or_get(self.store, self.key(manifest.number), manifest.encode(), {"attempt": manifest.attempt})
        if stored.metadata.get("attempt") != manifest.attempt:
            raise RaceLostError(
                f"Cannot commit manifest {manifest.number} of topic {self.topic}: another run committed it first. No "
                "record is lost. Run this again: it continues after that manifest."
            )

    def count_records(self, head: Manifest) -> int:
        """Return the number of records up to `head`. Count from the stored mark, then move the mark to `head`."""
        mark = self.mark("counted")
        if mark is not None and (mark.manifest, mark.attempt) == (head.number, head.attempt):
            return mark.records
        if mark is None or mark.manifest > head.number or self.read(mark.manifest).attempt != mark.attempt:
            mark = Mark(chain=self.id, manifest=0, attempt="", records=0)
        new = takewhile(lambda each: each.number <= head.number, self.since(mark.manifest))
        records = mark.records + sum(each.records for each in new)
        self.set_mark("counted", head, records)
        return records

    def mark(self, kind: chain_marks.Kind) -> Mark | None:
        """Return the manifest up to which the chain was counted or verified; None if there is no mark."""
        return chain_marks.load(self.store, kind, self.pipeline, self.topic, self.id)

    def set_mark(self, kind: chain_marks.Kind, manifest: Manifest, records: int) -> None:
        """Store that the chain was counted or verified up to a manifest; `records` is the count up to there."""
        mark = Mark(chain=self.id, manifest=manifest.number, attempt=manifest.attempt, records=records)
        chain_marks.save(self.store, kind, self.pipeline, self.topic, mark)

    def key(self, number: int) -> str:
        """Return the key of a manifest of this chain."""
        return object_names.manifest_key(self.pipeline, self.topic, number, self.id)

    def _start(self, manifest: Manifest) -> Start | None:
        """Return this topic's first offsets in the epoch that the manifest opens; None if it opens no epoch."""
        if manifest.opens is None:
            return None
        return Epochs(self.store, self.pipeline).read(manifest.epoch).starts.get(self.topic)

    def _exists(self, number: int) -> bool:
        return self.store.exists(self.key(number))

    def _after(self, number: int) -> Iterator[tuple[str, int]]:
        """Yield key and number of each manifest after `number`, in order.

        For the first chain, the manifests of later chains follow: their prefixes begin with the first chain's.
        """
        prefix = object_names.manifest_prefix(self.pipeline, self.topic, self.id)
        for item in self.store.scan(prefix, after=self.key(number) if number else prefix):
            found = object_names.manifest_number(item.key)
            if found is not None:
                yield item.key, found

    def _require_none_after(self, number: int) -> None:
        """Raise ManifestGapError if a later manifest exists, but not the next one."""
        later = next(self._after(number), None)
        if later is None or later[0] == self.key(number + 1):
            return
        missing = f"manifest {number + 1}"
        # Without the object that names the current chain, its manifests seem to follow those of the first chain.
        chain = f" or {object_names.chain_key(self.pipeline)}" if not self.id and "/chain=" in later[0] else ""
        raise ManifestGapError(
            f"Cannot use the manifests of topic {self.topic}: {missing}{chain} is missing, but {later[0]} exists. "
            f"Nothing was changed. Restore {missing}{chain}, or {reset_advice(self.pipeline)}."
        )

    def _require_own(self, manifest: Manifest) -> None:
        if manifest.chain != self.id:
            raise ManifestGapError(
                f"Cannot use manifest {manifest.number} of topic {self.topic}: its key "
                f"{self.key(manifest.number)} belongs to {_chain_name(self.id)}, but its content to "
                f"{_chain_name(manifest.chain)}. Nothing was changed. Restore the original object; if there was "
                f"none, delete this one; or {reset_advice(self.pipeline)}."
            )


def check_follows(before: Manifest | None, manifest: Manifest, opening: Start | None = None) -> None:
    """Check that a manifest starts at the offsets at which the previous one (`before`) ended, in each partition.

    A manifest that opens an epoch must start at the epoch's first offsets instead (`opening`).

    Raises ManifestGapError for a missing number, a gap or an overlap, TopicRecreatedError for another topic id.
    """
    expected = 1 if before is None else before.number + 1
    if manifest.number != expected:
        raise _gap(
            manifest,
            f"manifest {expected} is missing, but manifest {manifest.number} exists",
            "Restore the missing manifest",
        )
    epoch = 0 if before is None else before.epoch
    if manifest.opens is not None:
        if fault := _opening_fault(before, manifest, opening):
            raise _gap(manifest, fault)
        return
    if manifest.epoch != epoch:
        cause = f". The manifest that opens epoch {manifest.epoch} is missing" if manifest.epoch > epoch else ""
        raise _gap(
            manifest,
            f"manifest {manifest.number} belongs to epoch {manifest.epoch}, but {_epoch_before(before)}{cause}",
        )
    if before is not None and before.topic_id != manifest.topic_id:
        raise TopicRecreatedError(
            f"{_unusable(manifest)}: the topic was deleted and re-created (its id was {before.topic_id} and is now "
            f"{manifest.topic_id}), and its offsets start from 0 again. `cdc-lake resnapshot {manifest.pipeline}` "
            "continues from a new snapshot."
        )
    starts = {} if before is None else dict(before.next_offsets())
    for span in manifest.spans:
        start = starts.pop(span.partition, 0)  # a partition that was added starts at 0
        if span.first != start:
            raise _gap(
                manifest,
                f"partition {span.partition} starts at offset {span.first} in manifest {manifest.number}, but should "
                f"start at {start} ({'a gap' if span.first > start else 'an overlap'})",
            )
    if starts:
        missing = ("partition " if len(starts) == 1 else "partitions ") + ", ".join(map(str, sorted(starts)))
        raise _gap(manifest, f"manifest {manifest.number} does not contain {missing}")


def _opening_fault(before: Manifest | None, manifest: Manifest, opening: Start | None) -> str | None:
    """Return why a manifest cannot open its epoch; None if it can."""
    opens = f"manifest {manifest.number} opens epoch {manifest.epoch}"
    if manifest.epoch <= (0 if before is None else before.epoch):
        return f"{opens}, but {_epoch_before(before)}"
    if opening is None:
        return f"{opens}, but no first offsets of topic {manifest.topic} are stored for epoch {manifest.epoch}"
    if manifest.topic_id != opening.topic_id:
        return f"{opens} with topic id {manifest.topic_id}; the epoch starts with topic id {opening.topic_id}"
    firsts = {span.partition: span.first for span in manifest.spans}
    if firsts != opening.offsets:
        return f"{opens} at {_offsets(firsts)}; the epoch starts at {_offsets(opening.offsets)}"
    return None


def _epoch_before(before: Manifest | None) -> str:
    return f"manifest {before.number} belongs to epoch {before.epoch}" if before else "the chain begins in epoch 0"


def _offsets(offsets: Mapping[int, int]) -> str:
    return ", ".join(f"partition {number} offset {offset}" for number, offset in sorted(offsets.items())) or "no offset"


def _unusable(manifest: Manifest) -> str:
    return f"Cannot use the manifests of topic {manifest.topic} of pipeline {manifest.pipeline}"


def _gap(manifest: Manifest, cause: str, repair: str = _RESTORE) -> ManifestGapError:
    return ManifestGapError(
        f"{_unusable(manifest)}: {cause}. Nothing was changed. {repair}, or {reset_advice(manifest.pipeline)}."
    )


def _chain_name(chain: str) -> str:
    return f"chain {chain}" if chain else "the pipeline's first chain"
