"""Builds the archive of a Kafka Connect plugin as MSK Connect requires it: one zip with jars at its root."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from resources.errors import ResourceError

CONFIG_PROVIDER = "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider"
"""The config provider for Secrets Manager. Source: releases of https://github.com/aws-samples/msk-config-providers."""
_HASHED = 12
_BLOCK = 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date in the zip format
_VERSIONED = re.compile(r"(?P<artifact>.+?)-(?P<version>\d.*)\.jar")
# Prefix of the jars that Kafka's connect-plugin-path tool adds during `cdc-lake up` for plugins without manifests.
_SHIM = "connect-plugin-path-shim"


class PluginInvalid(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """The files cannot be packed into a working plugin."""


@dataclass(frozen=True)
class PluginArchive:
    """A built zip."""

    path: Path
    digest: str
    """SHA-256 of the zip, in hex; the same jars result in the same digest."""
    jars: tuple[str, ...]
    duplicates: tuple[str, ...]
    """Artifacts that the zip contains in more than one version; the class loader uses one of them arbitrarily."""

    @property
    def name(self) -> str:
        """The name of the custom plugin: the zip's name, which ends in the first digits of the digest."""
        return self.path.stem


@dataclass(frozen=True)
class _Jar:
    name: str
    source: Path
    member: str | None
    """The path in `source` if that is a zip."""

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.source.open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(self.source) as archive, archive.open(self.member) as file:
                yield file

    def digest(self) -> str:
        with self.opened() as file:
            return _sha256(file)


def build(
    name: str, folder: Path | None, sources: Iterable[Path], out: Path, provider: str | None = CONFIG_PROVIDER
) -> PluginArchive:
    """Pack the jars of `folder` (with subfolders) and of `sources` into a zip in `out`.

    The file is `<name>-<digest>.zip`. A jar that is in several sources is packed once.

    Args:
        name: lower case letters, digits and hyphens: MSK Connect allows no underscore.
        folder: a plugin's folder, as on a worker's plugin.path; None: pack only `sources`.
        sources: more jars; folders, such as that of the Avro converter; and vendors' zips. The jars in subfolders of
            folders and zips are included.
        out: the folder for the zip, created if it is missing.
        provider: the class of the worker configuration's config provider; one of the jars has to contain it. None: the
            worker configuration has no provider.

    Raises:
        PluginInvalid: there is no jar; a source is not a jar, zip or folder, or has no jar; two different jars have
            the same name; no jar contains `provider`.
    """
    if not re.fullmatch(r"[a-z0-9](-?[a-z0-9])*", name):
        raise PluginInvalid(
            f"Cannot name a plugin {name!r}: a name consists of lower case letters, digits and single hyphens. Choose"
            " another name."
        )
    jars = _chosen([*_in_folder(folder), *(jar for source in sources for jar in _in_source(source))])
    if not jars:
        place = "" if folder is None else f" in {folder}"
        raise PluginInvalid(
            f"Cannot build the plugin {name}: there are no jars{place}.",
            "Run `cdc-lake setup`, or add jars with --add.",
        )
    if provider is not None and not any(_has_class(jar, provider) for jar in jars):
        raise PluginInvalid(
            f"Cannot build the plugin {name}: no jar contains the class {provider}, which the worker configuration"
            " names as its config provider, so the workers would not start.",
            "Add the msk-config-providers-<version>-all.jar of a release of"
            " https://github.com/aws-samples/msk-config-providers, or use --no-provider if the worker configuration"
            " names no provider.",
        )
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as draft:
        draft_zip = Path(draft) / "plugin.zip"
        _pack(jars, draft_zip)
        with draft_zip.open("rb") as file:
            digest = _sha256(file)
        path = draft_zip.rename(out / f"{name}-{digest[:_HASHED]}.zip")
    names = tuple(jar.name for jar in jars)
    return PluginArchive(path, digest, names, _duplicates(names))


def _in_folder(folder: Path | None) -> list[_Jar]:
    found = [] if folder is None else sorted(folder.rglob("*.jar"))
    return [_Jar(path.name, path, None) for path in found if not path.name.startswith(_SHIM)]


def _in_source(source: Path) -> list[_Jar]:
    if source.is_dir():
        if not (jars := _in_folder(source)):
            raise PluginInvalid(
                f"Cannot add the folder {source} to the plugin: it contains no jar.",
                "Give the folder that contains the jars to --add.",
            )
        return jars
    if not source.is_file():
        raise PluginInvalid(f"Cannot add {source} to the plugin: there is no such file.", "Correct the path.")
    if not zipfile.is_zipfile(source):
        raise PluginInvalid(
            f"Cannot add {source} to the plugin: it is neither a jar nor a zip.",
            "Give a jar, or the zip that a vendor packs, to --add.",
        )
    if source.suffix == ".jar":
        return [_Jar(source.name, source, None)]
    with zipfile.ZipFile(source) as archive:
        members = sorted(each for each in archive.namelist() if each.endswith(".jar"))
    if not members:
        raise PluginInvalid(
            f"Cannot add {source} to the plugin: it contains no jar.",
            "Add the zip that a vendor packs for Kafka Connect.",
        )
    return [_Jar(PurePosixPath(member).name, source, member) for member in members]


def _chosen(jars: Iterable[_Jar]) -> list[_Jar]:
    chosen: dict[str, _Jar] = {}
    for jar in jars:
        first = chosen.setdefault(jar.name, jar)
        if first is not jar and first.digest() != jar.digest():
            raise PluginInvalid(
                f"Cannot build the plugin: {jar.name} in {jar.source} differs from that in {first.source}, and a zip"
                " can contain only one of them.",
                "Build a separate plugin from each source.",
            )
    return [chosen[name] for name in sorted(chosen)]


def _has_class(jar: _Jar, name: str) -> bool:
    entry = f"{name.replace('.', '/')}.class"
    try:
        with jar.opened() as file, zipfile.ZipFile(file) as archive:
            return entry in archive.namelist()
    except zipfile.BadZipFile as error:
        raise PluginInvalid(f"Cannot read {jar.name} in {jar.source}: {error}.", "Download it again.") from error


def _pack(jars: Iterable[_Jar], path: Path) -> None:
    """Write the jars to a zip, uncompressed because jars are compressed. Its bytes depend on the jars only."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for jar in jars:
            entry = zipfile.ZipInfo(jar.name, _EPOCH)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            with jar.opened() as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target)


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _duplicates(names: Iterable[str]) -> tuple[str, ...]:
    artifacts = Counter(match["artifact"] for match in map(_VERSIONED.fullmatch, names) if match)
    return tuple(sorted(name for name, versions in artifacts.items() if versions > 1))
