"""Runs a command and ends with its exit code; ends it, and all of its group, when whoever started this is gone.

The starter holds the other end of standard input: it closes however the starter dies, also by SIGKILL. A program of
its own, by the standard library only, so that it starts at once: `python child.py COMMAND ARGUMENT…` in a session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    """Run the command."""
    # A handler, since what is ignored stays so in the command: SIGTERM is for that, and this waits for its end.
    signal.signal(signal.SIGTERM, lambda *_: None)
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_watch, daemon=True).start()
    code = command.wait()
    return code if code >= 0 else 128 - code


def _watch() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
