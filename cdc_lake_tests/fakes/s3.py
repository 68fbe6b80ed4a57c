"""As much of S3 as an upload needs, over HTTP: whole objects are put and looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

from cdc_lake_tests.fakes.server import listening


@dataclass
class MemoryS3:
    """Objects by `/bucket/key`; `puts` has the keys in the order in which they were put."""

    objects: dict[str, bytes] = field(default_factory=dict)
    puts: list[str] = field(default_factory=list)
    url: str = ""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401 - WSGI
        request = Request(environ)
        if request.method == "PUT":
            self.objects[request.path] = request.get_data()
            self.puts.append(request.path)
            answer = Response(status=200, headers={"ETag": '"1"'})
        elif request.path in self.objects:
            answer = Response(self.objects[request.path], headers={"ETag": '"1"'})
        else:
            answer = Response(status=404)
        return answer(environ, start_response)


@contextmanager
def served_s3() -> Iterator[MemoryS3]:
    """It, listening for the length of the block."""
    found = MemoryS3()
    with listening(found) as url:
        found.url = url
        yield found
