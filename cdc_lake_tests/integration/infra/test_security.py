"""Secrets are only in their own files, servers listen on loopback only, and other users and pages get no access."""

from __future__ import annotations

import ipaddress
import json
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import jwt
import psutil
import psycopg2
import pytest
from botocore.exceptions import ClientError
from psycopg2 import errors
from psycopg2.extras import PhysicalReplicationConnection

from cdc_lake_tests.integration.infra import attacks
from cdc_lake_tests.integration.infra.planted_secrets import Secured, secured_stack
from infra.local.components.trino import TrinoComponent, token
from infra.local.stack.component import Secrets, StackContext
from infra.local.stack.stack_secrets import load_or_make

SECRET_FILES = {
    "secrets.json",
    "connect/secrets/postgres.properties",
    "connect/logins.properties",
    "s3/s3proxy.properties",
}
"""The files that contain secrets: the stack's own, and those that an engine reads."""


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with secured_stack() as found:
        yield found


def test_no_command_line_contains_a_secret(secured: Secured) -> None:
    assert secured.watch.leaking == set()
    # The watch has seen all relevant processes: every engine, Spark's JVM and Dagster's run.
    seen = "\n".join(secured.watch.seen)
    for main in (
        "kafka.Kafka",
        "ConnectDistributed",
        "s3proxy.Main",
        "TrinoServer",
        "infra.local.aws_api",
        "SparkSubmit",
    ):
        assert main in seen, main
    assert re.search(r"postgres.* -D ", seen)
    assert "asset materialize" in seen


def test_only_the_secret_files_contain_a_secret(secured: Secured) -> None:
    """The search covers logs, Dagster's event log, Kafka's data (connector configurations), the lake and the pages."""
    assert secured.files_with_a_secret() == SECRET_FILES
    home = secured.stack.home.path
    for log in ("postgres", "kafka", "connect", "s3", "aws", "trino"):
        assert (home / "logs" / f"{log}.log").exists()
    assert list((home / "dagster" / "storage").glob("**/*")), "Dagster wrote its event log elsewhere"


def test_no_command_prints_a_secret(secured: Secured) -> None:
    for command in (
        ("status", "--json"),
        ("status",),
        ("doctor",),
        ("topic", "ls"),
        ("topic", "peek", "cdc-lake-connect-configs", "-n", "100"),
        ("logs", "connect", "-n", "10000"),
        ("query", "SHOW CREATE TABLE cdc_events"),
        ("raw", "cat", "northwind", "--limit", "5"),
    ):
        secured.run("cdc-lake", *command)
    assert not secured.planted.within("\n".join(secured.printed))


def test_connect_returns_references_to_secrets_only(secured: Secured) -> None:
    name = "cdc-lake-northwind"
    paths = (
        "/connectors?expand=info&expand=status",
        f"/connectors/{name}",
        f"/connectors/{name}/config",
        f"/connectors/{name}/tasks",
        f"/connectors/{name}/status",
        f"/connectors/{name}/offsets",
        "/admin/loggers",
    )
    answers = {path: secured.connect("GET", path).raise_for_status().text for path in paths}
    assert not any(secured.planted.within(text) for text in answers.values())
    config = json.loads(answers[f"/connectors/{name}/config"])
    assert re.fullmatch(r"\$\{file:/.+/postgres\.properties:postgres\.password\}", config["database.password"])
    # The validation of a configuration does not return the resolved secret either.
    plugin = f"/connector-plugins/{config['connector.class']}/config/validate"
    answer = secured.connect("PUT", plugin, config).raise_for_status().text
    assert not secured.planted.within(answer)


def test_connect_reads_secrets_from_one_folder_only(secured: Secured) -> None:
    config = secured.connect("GET", "/connectors/cdc-lake-northwind/config").json()
    stolen = {**config, "topic.prefix": f"${{file:{secured.stack.home.secrets_file}:s3_secret_key}}"}
    plugin = f"/connector-plugins/{config['connector.class']}/config/validate"
    assert not secured.planted.within(secured.connect("PUT", plugin, stolen).text)


STEAL = """
import sys, urllib.error, urllib.request
method, url, body = sys.argv[1:4]
request = urllib.request.Request(url, body.encode() or None, {"content-type": "application/json"}, method=method)
try:
    print(200, urllib.request.urlopen(request, timeout=60).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


def test_connect_refuses_another_user(secured: Secured) -> None:
    """Without a login, one such call returned the password of PostgreSQL's superuser to any user."""
    config = secured.connect("GET", "/connectors/cdc-lake-northwind/config").json()
    stolen = {**config, "transforms": config["database.password"]}
    plugin = f"/connector-plugins/{config['connector.class']}/config/validate"
    for method, path, body in (
        ("PUT", plugin, json.dumps(stolen)),
        ("PUT", "/connectors/theirs/config", json.dumps(config)),
        ("GET", "/connectors", ""),
        ("GET", "/", ""),
        ("PUT", "/admin/loggers/root", json.dumps({"level": "TRACE"})),
        ("DELETE", "/connectors/cdc-lake-northwind", ""),
        # Requests between workers, which are signed with the workers' key instead of a password.
        ("POST", "/connectors/cdc-lake-northwind/tasks", "[]"),
        ("PUT", "/connectors/cdc-lake-northwind/fence", "{}"),
    ):
        answer = secured.run_as_other_user(STEAL, method, secured.at.connect_url + path, body)
        assert answer[:3] in {"400", "401", "403"}, (path, answer)
        assert not secured.planted.within(answer)
    assert secured.connect("GET", "/connectors/cdc-lake-northwind/status").json()["connector"]["state"] == "RUNNING"


def test_a_user_of_connect_can_read_debeziums_password_at_most(secured: Secured) -> None:
    config = secured.connect("GET", "/connectors/cdc-lake-northwind/config").json()
    plugin = f"/connector-plugins/{config['connector.class']}/config/validate"
    answer = secured.connect("PUT", plugin, {**config, "transforms": config["database.password"]}).text
    assert secured.planted.debezium_password in answer, "the attack does not work even with the login"
    assert secured.planted.postgres_password not in answer
    for setting in ("sasl.jaas.config", "bootstrap.servers", "interceptor.classes"):
        refused = secured.connect("PUT", plugin, {**config, f"producer.override.{setting}": "x"}).json()
        faults = [fault for each in refused["configs"] for fault in each["value"]["errors"]]
        assert any(f"policy does not allow '{setting}'" in fault for fault in faults), faults


def test_debeziums_role_reads_captured_tables_and_writes_the_heartbeat_only(secured: Secured) -> None:
    config = secured.connect("GET", "/connectors/cdc-lake-northwind/config").json()
    login = {"user": config["database.user"], "password": secured.planted.debezium_password, "dbname": "devdb"}
    at = secured.at
    with closing(psycopg2.connect(host=at.postgres_host, port=at.postgres_port, **login)) as db, db.cursor() as cursor:
        db.autocommit = True
        cursor.execute("SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False, False)
        cursor.execute("SELECT count(*) > 0 FROM datalake.cdc_events")
        assert cursor.fetchone() == (True,)
        for statement in (
            "SELECT * FROM datalake.orders",
            "DELETE FROM datalake.cdc_events",
            "DELETE FROM datalake.cdc_heartbeat",
            "CREATE TABLE datalake.mine (id int)",
            "SELECT rolpassword FROM pg_authid",
            "SELECT pg_read_file('/etc/passwd')",
            "COPY datalake.cdc_events TO PROGRAM 'cat'",
            "ALTER ROLE CURRENT_USER SUPERUSER",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                cursor.execute(statement)
    with pytest.raises(psycopg2.OperationalError, match=r"no pg_hba\.conf entry for replication connection"):
        psycopg2.connect(
            host=at.postgres_host, port=at.postgres_port, connection_factory=PhysicalReplicationConnection, **login
        )


READ = """
import json, os, sys
read = []
for folder in sys.argv[1:]:
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            try:
                open(path, "rb").close()
                read.append(path)
            except OSError:
                pass
print(json.dumps(read))
"""

OPEN = """
import json, sys
read = []
for path in sys.argv[1:]:
    try:
        open(path, "rb").close()
        read.append(path)
    except OSError:
        pass
print(json.dumps(read))
"""

SPARK_AT_WORK = """
import json, subprocess, sys
from pathlib import Path
from pyspark import StorageLevel
from cdc_lake import profile
spark = profile.spark()
rows = spark.session().range(1000).repartition(4).persist(StorageLevel.DISK_ONLY)
rows.count()
scratch = Path(spark.session().conf.get("spark.local.dir"))
kept = [str(path) for path in scratch.rglob("*") if path.is_file()]
as_other_user = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/", "capture_output": True}
program = ["/usr/bin/python3", "-I", "-c", sys.argv[1], str(scratch)]
seen = subprocess.run(program, **as_other_user, check=True)
listed = subprocess.run(["/bin/ls", *kept], **as_other_user, check=False)
print(json.dumps({"kept": kept, "read": json.loads(seen.stdout), "listed": listed.stdout.decode()}))
"""


def test_another_user_cannot_read_a_file_of_the_stack(secured: Secured) -> None:
    files = [str(path) for path in secured.stack.home.path.rglob("*") if path.is_file()]
    assert json.loads(secured.run_as_other_user(OPEN, *files)) == []
    assert json.loads(secured.run_as_other_user(READ, str(secured.stack.home.path))) == []
    # The other user may enter the state folder, and knows these names.
    for name in ("stack.json", "secrets.json", "connect/secrets/postgres.properties", "connect/logins.properties"):
        with pytest.raises(subprocess.CalledProcessError):
            secured.run_as_other_user("import sys; open(sys.argv[1])", str(secured.stack.home.path / name))


def test_another_user_cannot_read_sparks_files(secured: Secured) -> None:
    found = json.loads(secured.run("python", "-c", SPARK_AT_WORK, READ).splitlines()[-1])
    assert any("shuffle_" in path for path in found["kept"])
    assert all(path.startswith(str(secured.stack.home.path / "spark")) for path in found["kept"])
    assert (found["read"], found["listed"]) == ([], "")


def test_all_servers_listen_on_loopback_only(secured: Secured) -> None:
    listening: dict[str, set[str]] = {}
    for name, processes in secured.processes().items():
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # a short-lived process of PostgreSQL
                for each in process.net_connections(kind="inet"):
                    if each.status == "LISTEN" or (not each.raddr and each.laddr):  # type: ignore[unreachable]  # raddr may be ()
                        listening.setdefault(name, set()).add(each.laddr.ip)
    assert listening.keys() == {"postgres", "kafka", "registry", "connect", "s3", "aws", "trino"}
    outside = {name: found for name, ips in listening.items() if (found := [ip for ip in ips if not _loopback(ip)])}
    assert outside == {}


def _loopback(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def test_files_are_accessible_to_their_owner_only(secured: Secured) -> None:
    home = secured.stack.home.path
    for file in SECRET_FILES:
        assert stat.S_IMODE((home / file).stat().st_mode) == 0o600, file
    for folder in (path for path in home.iterdir() if path.is_dir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder.name
    assert stat.S_IMODE(home.stat().st_mode) in {0o700, 0o711}


def test_every_service_of_the_aws_api_requires_the_stacks_signature(secured: Secured) -> None:
    at = secured.at
    for service, call in attacks.CALLS.items():
        call(attacks.client(at, service))

        def guess(call: Callable[[Any], object] = call, service: str = service) -> object:
            return call(attacks.client(at, service, secret="guessed"))

        refusal = _refusal(guess)
        assert refusal.response["ResponseMetadata"]["HTTPStatusCode"] == 403, service
        assert refusal.response["Error"]["Code"] == "InvalidSignatureException", service
    offered = re.search(r", only (.+)\. Send", str(_refusal(lambda: attacks.client(at, "sqs").list_queues())))
    assert offered is not None
    assert set(offered[1].split(", ")) == attacks.CALLS.keys()
    presigned = attacks.client(at, "glue").generate_presigned_url("get_databases")
    assert attacks.send("POST", presigned, {}).status_code == 403
    assert attacks.send("POST", at.aws_endpoint, {"X-Amz-Target": "AWSGlue.GetDatabases"}).status_code == 403


def _refusal(call: Callable[[], object]) -> ClientError:
    with pytest.raises(ClientError) as refused:
        call()
    return refused.value


@pytest.mark.parametrize("page", attacks.PAGES)
def test_the_stacks_servers_refuse_pages_of_other_origins(secured: Secured, page: str) -> None:
    at, headers = secured.at, attacks.PAGES[page]
    requests = {
        "athena": ("POST", at.aws_endpoint, {"X-Amz-Target": "AmazonAthena.StartQueryExecution"}),
        "s3": ("GET", f"{at.s3_endpoint}/{at.bucket}", {}),
        "trino": ("POST", f"{at.trino_url}/v1/statement", {"X-Trino-User": "athena"}),
        "trino's queries": ("GET", f"{at.trino_url}/v1/query", {"X-Trino-User": "athena"}),
        "trino behind a proxy": ("GET", f"{at.trino_url}/v1/query", {"X-Forwarded-Proto": "https"}),
        "connect": ("GET", f"{at.connect_url}/connectors", {}),
    }
    answers = {name: attacks.send(method, url, {**more, **headers}) for name, (method, url, more) in requests.items()}
    assert {name: answer.status_code for name, answer in answers.items() if answer.status_code not in {401, 403}} == {}
    assert not any(secured.planted.within(answer.text) for answer in answers.values())


def test_trino_requires_the_stacks_token(secured: Secured) -> None:
    at = secured.at
    valid = token(load_or_make(secured.stack.home.secrets_file))
    forged = jwt.encode({"sub": "athena"}, "guessed" * 8, algorithm="HS256")
    unsigned = jwt.encode({"sub": "athena"}, "", algorithm="none")
    proxied = {"X-Trino-User": "athena", "X-Forwarded-Proto": "https"}
    for each, expected in ((valid, 200), (forged, 401), (unsigned, 401)):
        headers = {**proxied, "Authorization": f"Bearer {each}"}
        assert attacks.send("GET", f"{at.trino_url}/v1/query", headers).status_code == expected
    for path in ("/v1/query", "/v1/node", "/v1/task", "/v1/thread", "/v1/jmx/mbean"):
        assert attacks.send("GET", at.trino_url + path, proxied).status_code in {401, 403}, path
    for headers in (proxied, {"X-Trino-User": "athena"}, {"Authorization": f"Bearer {forged}"}):
        answer = attacks.send("POST", f"{at.trino_url}/v1/statement", headers, content="SELECT 1")
        assert answer.status_code in {401, 403}
    another = Secrets("", "", "", "", "another")
    ports = {"trino": int(at.trino_url.rpartition(":")[2])}
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        TrinoComponent().probe(StackContext(secured.stack.home.path, ports, another))


def test_dagsters_web_server_answers_pages_of_its_own_origin_only(tmp_path: Path) -> None:
    body = {"query": "{ version }"}
    with attacks.dagster_webserver(tmp_path) as url:
        assert attacks.send("POST", f"{url}/graphql", {"Origin": url}, json=body).json()["data"]["version"]
        for headers in attacks.PAGES.values():
            assert attacks.send("POST", f"{url}/graphql", headers, json=body).status_code in {400, 403}
            assert attacks.send("GET", f"{url}/server_info", headers).status_code in {400, 403}
            assert attacks.upgrade(f"{url}/graphql", headers) in {400, 403}
        assert attacks.upgrade(f"{url}/graphql", {"Origin": url}) == 101
        for sent in ({"Content-Type": "text/plain"}, {"Content-Type": "text/plain; application/json"}):
            assert attacks.send("POST", f"{url}/graphql", sent, json=body, params=body).status_code == 403
        assert attacks.send("GET", f"{url}/graphql", {}, params=body).status_code == 403


def test_s3_refuses_unsigned_and_wrongly_signed_requests(secured: Secured) -> None:
    bucket = f"{secured.at.s3_endpoint}/{secured.at.bucket}"
    assert httpx.get(bucket, trust_env=False).status_code == 403
    wrong = {"Authorization": "AWS cdcplanted:AAAAAAAAAAAAAAAAAAAAAAAAAAA="}
    assert httpx.get(bucket, headers=wrong, trust_env=False).status_code == 403


def test_each_state_folder_has_its_own_secrets(tmp_path: Path) -> None:
    first, second = (load_or_make(tmp_path / name) for name in ("a.json", "b.json"))
    for name in ("postgres_password", "debezium_password", "connect_password", "s3_access_key", "s3_secret_key"):
        assert getattr(first, name) != getattr(second, name)
        assert len(getattr(first, name)) >= 19
    assert load_or_make(tmp_path / "a.json") == first
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600
