"""Repeats a measurement in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def repeated(work: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `work` every `seconds` in a thread during the block. After the block, raises the error that it raised."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(seconds):
            work()

    with ThreadPoolExecutor(1) as pool:
        calls = pool.submit(repeat)
        try:
            yield
        finally:
            stop.set()
        calls.result()
