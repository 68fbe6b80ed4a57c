"""The program that spark-submit runs on EMR: `main.py job --name upsert --spec s3://…/spec.json --report s3://…`.

It reads the spec, runs the job in a Spark session with the cluster's settings, and writes the report or the error to
the object that the caller reads. A run that is killed writes nothing. `main.py session --prefix s3://…/` runs many jobs
(session.py).
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from cdc_lake.contract.errors import ObjectConflictError, ObjectDamagedError
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError, S3Location
from cdc_lake.jobs.remote import job_call, secret_values
from cdc_lake.jobs.remote.session import RequestObjects, serve

log = logging.getLogger("cdc_lake.jobs.remote.main")

StoreOf = Callable[[str], ObjectStore]
Session = Callable[[], SparkSession]


def main(
    arguments: Sequence[str] | None = None,
    store: StoreOf = lambda bucket: S3Location(bucket).store(),
    session: Session = SparkSession.builder.getOrCreate,
) -> int:
    """Run one job, or the jobs of a session; `store` and `session` are called when needed.

    Returns 0 if the job's report was written or the session was closed, else 1.
    """
    parser = argparse.ArgumentParser(prog="main.py", description="Runs cdc-lake's Spark jobs.")
    parser.add_argument("--region", required=True, help="the AWS region of the jobs' requests")
    programs = parser.add_subparsers(dest="program", required=True)
    job_parser = programs.add_parser("job", help="runs one job")
    job_parser.add_argument("--name", required=True, choices=sorted(job_call.JOBS))
    job_parser.add_argument("--spec", required=True, help="the object to read the spec from")
    job_parser.add_argument("--report", required=True, help="the object to write the report or the error to")
    session_parser = programs.add_parser("session", help="runs jobs on request, until the caller closes the session")
    session_parser.add_argument("--prefix", required=True, help="the prefix of the objects of requests and reports")
    args = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    os.environ.setdefault("AWS_DEFAULT_REGION", args.region)
    if args.program == "session":
        return _serve(args.prefix, store, session)
    try:
        text = _run(job_call.JOBS[args.name], _read(args.spec, store), session)
    except Exception as error:
        log.exception("The job %s failed.", args.name)
        _write(args.report, job_call.error_text(error), store)
        return 1
    _write(args.report, text, store)
    return 0


def _serve(uri: str, store: StoreOf, session: Session) -> int:
    bucket, prefix = _bucket_and_key(uri)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    spark = session()
    try:
        serve(RequestObjects(store(bucket), prefix), spark, stop)
    finally:
        spark.stop()
    return 0


def _run(job: job_call.Job, request: str, session: Session) -> str:
    spec = job_call.spec_of(job, request, secret_values.password)
    spark = session()
    try:
        return job_call.report_text(job(spark, spec))
    finally:
        spark.stop()


def _read(uri: str, store: StoreOf) -> str:
    bucket, key = _bucket_and_key(uri)
    found = store(bucket).get(key)
    if found is None:
        raise ObjectDamagedError(f"Cannot read the job's spec {uri}: there is no such object. Start the job again.")
    return found.body.decode()


def _write(uri: str, text: str, store: StoreOf) -> None:
    """Write the result; accept an existing object with the same contents, which is from a retried put."""
    bucket, key = _bucket_and_key(uri)
    objects = store(bucket)
    try:
        objects.put_new(key, text.encode())
    except PreconditionFailedError as error:
        found = objects.get(key)
        if found is None or found.body != text.encode():
            raise ObjectConflictError(
                f"Cannot write {uri}: it exists already, from another run of this job. Start the job again."
            ) from error


def _bucket_and_key(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return parts.netloc, parts.path.lstrip("/")


if __name__ == "__main__":
    sys.exit(main())
