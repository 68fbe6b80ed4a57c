"""Apply the transforms of landing to Avro records: the schema of a raw object changes with its records.

record_text.py applies the same transforms to JSON. Both give the same JSON text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Self

import fastavro

from cdc_lake.contract.schema.transforms import CastType, TableTransforms
from cdc_lake.contract.source.avro_records import AvroValue, UndecodableError

_TYPES: Mapping[CastType, str] = {"int32": "int", "int64": "long", "float64": "double", "string": "string"}
_CASTABLE: Mapping[str, frozenset[CastType]] = {
    "int": frozenset({"int64", "float64", "string"}),
    "long": frozenset({"string"}),
    "boolean": frozenset({"string"}),
}
"""For each Avro type, the casts that change its values. Other values are kept. transforms.py has the allowed CASTS."""


@dataclass(frozen=True)
class AvroTransform:
    """Changes the records of one schema: cast, renamed and inserted fields.

    A field that the source has already transformed is not changed again. `source` and `target` are the schemas before
    and after, `text` is the JSON text of `target`. `names` and `casts` are keyed by the field's name in `source`,
    `inserted` has the values of new fields.
    """

    source: Any
    target: Any
    text: str
    names: Mapping[str, str]
    casts: Mapping[str, CastType]
    inserted: Mapping[str, str]

    @classmethod
    def of(cls, schema: str, changes: TableTransforms, name: str) -> Self:
        """Return the transform for a schema, given as JSON text; `name` identifies the schema in errors.

        Raises UndecodableError if the changes cannot be applied.
        """
        found = json.loads(schema)
        if not isinstance(found, dict) or found.get("type") != "record":
            raise UndecodableError(f"{name} is not a record schema, so landing cannot apply its transforms")
        names = {each["name"]: changes.renamed.get(each["name"], each["name"]) for each in found["fields"]}
        casts = {
            each["name"]: kind
            for each in found["fields"]
            if (kind := changes.cast.get(each["name"])) and kind in _CASTABLE.get(_primitive(each["type"]), ())
        }
        inserted = {new: value for new, value in changes.inserted.items() if new not in names.values()}
        fields = [_field(each, names[each["name"]], casts.get(each["name"])) for each in found["fields"]]
        fields += [{"name": new, "type": "string"} for new in inserted]
        if twice := [each for each, count in Counter(field["name"] for field in fields).items() if count > 1]:
            raise UndecodableError(f"the transforms of landing give {name} two fields {twice[0]}: use another new name")
        changed = found | {"fields": fields}
        parsed = fastavro.parse_schema(json.loads(json.dumps(changed)))
        return cls(fastavro.parse_schema(found), parsed, json.dumps(changed), names, casts, inserted)

    def apply(self, record: AvroValue) -> AvroValue:
        """Return a record with the changes."""
        value: Any = fastavro.schemaless_reader(BytesIO(record.value), self.source, None)
        changed = {self.names[name]: _cast(field, self.casts.get(name)) for name, field in value.items()}
        body = BytesIO()
        fastavro.schemaless_writer(body, self.target, {**changed, **self.inserted})
        return AvroValue(record.schema_id, self.text, body.getvalue())


def _primitive(kind: Any) -> str:  # noqa: ANN401 - a schema's JSON
    """Return the name of a field's primitive type, which may be nullable; empty for another type."""
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        return _primitive(others[0]) if len(others) == 1 else ""
    if isinstance(kind, dict):
        return _primitive(kind["type"]) if "logicalType" not in kind else ""
    return str(kind)


def _field(field: Mapping[str, Any], name: str, cast: CastType | None) -> dict[str, Any]:
    """Return a field with its new name and type, without a default of the previous type."""
    changed = {**field, "name": name}
    if cast is not None:
        kind, target = field["type"], _TYPES[cast]
        changed["type"] = [each if each == "null" else target for each in kind] if isinstance(kind, list) else target
        if changed.get("default") is not None:
            del changed["default"]
    return changed


def _cast(value: Any, kind: CastType | None) -> Any:  # noqa: ANN401 - a value of any type
    if kind is None or value is None:
        return value
    if kind == "string":
        return str(value).lower() if isinstance(value, bool) else str(value)
    return float(value) if kind == "float64" else value
