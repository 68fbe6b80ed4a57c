"""EMR's and EMR Serverless' local APIs, served over HTTP, with a small program in the place of spark-submit."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
from botocore.config import Config
from werkzeug.serving import make_server

from cdc_lake_tests.fakes.s3 import MemoryS3, served_s3
from cdc_lake_tests.fakes.server import SIGNED
from infra.local.aws_endpoint.emr import EmrApi
from infra.local.aws_endpoint.emr_serverless import EmrServerlessApi
from infra.local.aws_endpoint.gate import Gate
from infra.local.aws_endpoint.json_rpc import JsonRpc
from infra.local.aws_endpoint.rest_json import RestJson
from infra.local.aws_endpoint.spark_runs import SparkRuns
from infra.local.aws_endpoint.spark_submit import SparkHere

REGION = "us-east-1"
BUCKET = "lake"
LOGS = f"s3://{BUCKET}/logs/"
_SESSION = boto3.Session()  # it reads the services' models once
SUBMIT = """#!{python} -S
# As spark-submit: options, then a program with its arguments; packages are on its path.
import json, runpy, sys
rest, settings, packages = sys.argv[1:], {{}}, []
while rest[0].startswith("-"):
    option, value, rest = rest[0], rest[1], rest[2:]
    if option == "--conf":
        name, _, told = value.partition("=")
        settings[name] = told
    elif option == "--py-files":
        packages = value.split(",")
    else:
        sys.exit(f"unknown option {{option}}")
print("settings", json.dumps(settings), flush=True)
sys.path[:0] = packages
sys.argv = rest
runpy.run_path(rest[0], run_name="__main__")
"""
ENTRY = """
# As main.py: reads what is to be done, and leaves what came of it.
import argparse, json, os, signal, sys, time, urllib.request
from shop.work import work
parser = argparse.ArgumentParser()
for name in ("--job", "--spec", "--report", "--region"):
    parser.add_argument(name)
told = parser.parse_args()
def at(uri):
    return os.environ["AWS_ENDPOINT_URL_S3"] + "/" + uri.removeprefix("s3://")
opened = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
answer = work(json.loads(opened(at(told.spec)).read()))
opened(urllib.request.Request(at(told.report), json.dumps(answer).encode(), method="PUT"))
sys.exit("error" in answer)
"""
WORK = """
import sys, time
def work(spec):
    if spec["do"] == "sleep":
        time.sleep(60)
    if spec["do"] == "die":
        sys.exit("java.lang.OutOfMemoryError: Java heap space")
    if spec["do"] == "fail":
        return {"error": "the table is held"}
    return {"report": spec["do"].upper()}
"""


@dataclass
class Trouble:
    """What becomes of requests on their way: so many of an operation are refused, or answered after a while."""

    refused: Counter[str] = field(default_factory=Counter)
    code: str = "ThrottlingException"
    late: dict[str, Callable[[], None]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def around(self, application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        """The application with the trouble ahead of it. An operation is its JSON target, or its method."""

        def troubled(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            name = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2] or environ["REQUEST_METHOD"]
            self.asked.append(name)
            if self.refused[name] > 0:
                self.refused[name] -= 1
                body = json.dumps({"__type": self.code, "message": "Not now"}).encode()
                code = ("x-amzn-ErrorType", self.code)
                start_response("400 Bad Request", [code, ("Content-Length", str(len(body)))])
                return [body]
            answer = application(environ, start_response)
            self.late.pop(name, lambda: None)()
            return answer

        return troubled


@dataclass
class Served:
    """The APIs at an address, and the store."""

    url: str
    s3: MemoryS3
    here: SparkHere
    runs: dict[str, SparkRuns]
    trouble: Trouble

    def client(self, service: str) -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """boto3's client: emr or emr-serverless."""
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        config = Config(proxies={}, retries={"total_max_attempts": 1})
        return _SESSION.client(service, endpoint_url=self.url, region_name=REGION, config=config, **keys)


@contextmanager
def served(folder: Path, prepare: Any = None) -> Iterator[Served]:  # noqa: ANN401 - Prepare, or SparkHere's
    """The APIs with the folder as their state; `prepare` in the place of SparkHere's."""
    with served_s3() as s3:
        here = spark_here(folder, s3)
        trouble = Trouble()
        made = prepare or here.prepared
        runs = {name: SparkRuns(folder / name, made, s3.client(), 1, 2.0) for name in ("emr", "emr-serverless")}
        serverless = EmrServerlessApi(runs["emr-serverless"], REGION).operations
        own = {
            "elasticmapreduce": JsonRpc("emr", EmrApi(runs["emr"], REGION, LOGS).operations),
            "emr-serverless": RestJson("emr-serverless", serverless, invalid="ValidationException"),
        }
        gate = Gate(lambda *_: [], REGION, SIGNED.holds, own)
        server = make_server("127.0.0.1", 0, trouble.around(gate), threaded=True)  # type: ignore[arg-type]
        thread = Thread(target=lambda: server.serve_forever(0.01), daemon=True)
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{server.server_port}", s3, here, runs, trouble)
        finally:
            for each in runs.values():
                each.close()
            server.shutdown()
            thread.join()
            server.server_close()


def spark_here(folder: Path, s3: MemoryS3) -> SparkHere:
    """What runs are given, with the program in the place of spark-submit."""
    submit = folder / "spark-submit"
    submit.write_text(SUBMIT.format(python=sys.executable))
    submit.chmod(0o755)
    jars = folder / "local-jars"
    jars.mkdir(exist_ok=True)
    (jars / "hudi.jar").write_bytes(b"hudi")
    return SparkHere(
        java_home="/java",
        jars=jars,
        region=REGION,
        s3_endpoint=s3.url,
        aws_endpoint="http://127.0.0.1:9",
        access_key="AKIALOCAL",
        secret_key="S3SECRET",
        s3=s3.client(),
        settings={"spark.driver.memory": "1g"},
        submit=submit,
    )


def code(folder: Path) -> dict[str, Any]:
    """A job's code in a folder, as the fields of EmrCode."""
    package = folder / "code" / "shop"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "work.py").write_text(WORK)
    entry = folder / "main.py"
    entry.write_text(ENTRY)
    jars = folder / "jars"
    jars.mkdir(exist_ok=True)
    (jars / "hudi-1.jar").write_bytes(b"hudi")
    (jars / "hadoop-aws-3.jar").write_bytes(b"s3a")
    return {"root": str(package.parent), "packages": ["shop"], "entry": str(entry), "jars": str(jars)}
