"""Checks connector files against the known settings of their connector class, without the plugin.

The folder `connectors/settings` contains a YAML file for each class, and one for Connect's own settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field

_CONNECT = "connect.yaml"
_CLASS = "connector.class"


class Setting(BaseModel):
    """Rules for a setting's value; `pattern` has to match the whole value."""

    model_config = ConfigDict(extra="forbid")

    required: bool = False
    one_of: list[str] | None = None
    pattern: str | None = None


class Together(BaseModel):
    """A rule over several settings: if those in `when` have these values, those in `must` must match the patterns."""

    model_config = ConfigDict(extra="forbid")

    when: dict[str, str]
    must: dict[str, str]


class Known(BaseModel):
    """The settings of a connector class, or of Connect; `families` are prefixes of names with any suffix."""

    model_config = ConfigDict(extra="forbid")

    connector_class: str = ""
    source: str
    settings: dict[str, Setting]
    families: list[str] = Field(default_factory=list)
    together: list[Together] = Field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """The known settings of Connect and of each connector class."""

    connect: Known
    classes: Mapping[str, Known]

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Return the settings in the YAML files of a folder."""
        found = {
            path.name: Known.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
            for path in sorted(folder.glob("*.yaml"))
        }
        connect = found.pop(_CONNECT)
        return cls(connect, {known.connector_class: known for known in found.values()})

    def faults(self, config: Mapping[str, str]) -> Iterator[str]:
        """Yield a sentence for each error in a configuration; nothing if its class is unknown."""
        known = self.classes.get(config.get(_CLASS, ""))
        if known is None:
            return
        settings = {**self.connect.settings, **known.settings}
        for name, setting in settings.items():
            if name not in config:
                if setting.required:
                    yield f"{name} is missing"
            elif setting.one_of is not None and config[name] not in setting.one_of:
                yield f"{name} is {config[name]!r}; allowed: {', '.join(setting.one_of)}"
            elif setting.pattern is not None and not re.fullmatch(setting.pattern, config[name]):
                yield f"{name} is {config[name]!r}, which does not match {setting.pattern!r}"
        for rule in known.together:
            if rule.when.items() <= config.items():
                why = ", ".join(f"{name} is {value!r}" for name, value in rule.when.items())
                for name, pattern in rule.must.items():
                    if not re.fullmatch(pattern, config.get(name, "")):
                        yield f"{name} is {config.get(name, '')!r}; if {why}, it must match {pattern!r}"
        for name in config.keys() - settings.keys():
            if not name.startswith((*self.connect.families, *known.families)):
                near = get_close_matches(name, settings, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                yield f"{name} is not a known setting of {known.connector_class} ({known.source}){meant}"
