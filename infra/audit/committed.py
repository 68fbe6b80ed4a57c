"""`python -m infra.audit.committed [FILE…]`: secrets in what is committed (all of it without names of files).

What detect-secrets takes for one, and somebody has looked at, is in `.secrets.baseline`; `--accept` writes that anew.
Exit code 1 for another one, said by file and line, its text left out.

Here: the scan and the comparison. Not here: which patterns there are (detect-secrets).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from detect_secrets.core import baseline
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings

BASELINE = Path(".secrets.baseline")
_NOT_READ = re.compile(r"\.(lock|ambr|png|ico|baseline)$")  # hashes of packages, snapshots, pictures, and itself


def scanned(files: Sequence[str]) -> SecretsCollection:
    """What looks like a secret in the files."""
    found = SecretsCollection()
    with default_settings():
        for file in files:
            if not _NOT_READ.search(file) and Path(file).is_file():
                found.scan_file(file)
    return found


def unseen(found: SecretsCollection, known: Path) -> list[str]:
    """What the baseline doesn't have, a line each; where a known one stands in its file does not matter."""
    seen = baseline.load(json.loads(known.read_text(encoding="utf-8"))) if known.exists() else SecretsCollection()
    new = found - seen
    return sorted(f"{file}:{secret.line_number}: {secret.type}" for file in new.files for secret in new[file])


def main(arguments: Sequence[str] | None = None) -> int:
    """Scan, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.audit.committed", description="Secrets in what is committed."
    )
    parser.add_argument("file", nargs="*", help="a file; all that git tracks without")
    parser.add_argument("--accept", action="store_true", help="write what is found into the baseline")
    asked = parser.parse_args(arguments)
    tracked = subprocess.run(("git", "ls-files", "-z"), capture_output=True, text=True, check=True).stdout.split("\0")
    files = asked.file or [file for file in tracked if file]
    found = scanned(files)
    if asked.accept:
        baseline.save_to_file(found, str(BASELINE))
        print(f"{len(list(found))} findings written to {BASELINE}: look at each before it is committed")
        return 0
    new = unseen(found, BASELINE)
    for line in new:
        print(f"SECRET? {line}")
    if new:
        print(
            f"Remove it and make it void; if it is none, run `python -m infra.audit.committed --accept` for {BASELINE}"
        )
    else:
        print(
            f"{len(files)} files scanned, no secret but the {len(list(found))} findings that {BASELINE} knows are none"
        )
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
