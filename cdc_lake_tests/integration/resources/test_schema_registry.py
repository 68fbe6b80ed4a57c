"""Apicurio Registry with Debezium's records in Avro: ids, credentials, and a kill of the registry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx
import jwt
import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from cdc_lake.contract.source.schema_registry import SchemaRegistry
from cdc_lake_tests.integration.resources.source_side import Source
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from resources.kafka.records import Message
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT
from resources.waiting import until

CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
APIS = (
    "/",
    "/ui/",
    "/metrics",
    "/api-specifications",
    "/apis",
    "/apis/ccompat/v6/subjects",
    "/apis/ccompat/v7/subjects",
    "/apis/ccompat/v7/schemas/ids/1",
    "/apis/registry/v1/artifacts",
    "/apis/registry/v2/search/artifacts",
    "/apis/registry/v2/system/info",
    "/apis/registry/v2/admin/config/properties",
    "/health/../apis/ccompat/v7/subjects",
    "//apis/ccompat/v7/subjects",
)
KEPT = 20


@dataclass(frozen=True)
class Registry:
    """The registry of a running stack."""

    stack: Stack

    @property
    def at(self) -> Endpoints:
        """Return the stack's addresses: the registry's port can change after a kill."""
        return load_endpoints(self.stack.home.path)

    @property
    def header(self) -> str:
        """Return the header Authorization."""
        assert self.at.registry_authorization is not None
        return self.at.registry_authorization.get_secret_value()

    @property
    def client(self) -> SchemaRegistry:
        """Return a new client, which has read no schema."""
        assert self.at.registry_ccompat_url is not None
        return SchemaRegistry(self.at.registry_ccompat_url, self.header)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own arguments
        """Send a request to a path below the registry's URL."""
        return httpx.request(method, f"{self.at.registry_url}{path}", timeout=30, trust_env=False, **more)

    def register(self, subject: str, schema: str) -> int:
        """Register a schema and return its id."""
        path = f"/apis/ccompat/v7/subjects/{subject}/versions"
        answer = self.request("POST", path, json={"schema": schema}, headers={"Authorization": self.header})
        return int(answer.raise_for_status().json()["id"])

    def versions(self, subject: str) -> list[int]:
        """Return the version numbers of a subject."""
        path = f"/apis/ccompat/v7/subjects/{subject}/versions"
        answer = self.request("GET", path, headers={"Authorization": self.header}).raise_for_status()
        return [int(each) for each in answer.json()]

    def global_id(self, subject: str) -> int:
        """Return Apicurio's own id of a subject's newest version."""
        path = f"/apis/registry/v2/groups/default/artifacts/{subject}/meta"
        answer = self.request("GET", path, headers={"Authorization": self.header})
        return int(answer.raise_for_status().json()["globalId"])


@pytest.fixture(scope="module")
def registry(source_engines: Source) -> Registry:
    """Start the registry in the stack that runs already."""
    source_engines.stack.up(["registry"])
    return Registry(source_engines.stack)


@pytest.fixture
def avro(source: Source) -> Source:
    """Return a source with a row in the table `ev`, for a connector that writes Avro."""
    source.execute("create table ev (id int primary key, v text); insert into ev values (1, 'first')")
    source.postgres.ensure_internal_table(source.schema, HEARTBEAT)
    source.postgres.ensure_publication(source.schema, [(source.schema, table) for table in source.tables])
    return source


def avro_config(source: Source, registry: Registry) -> dict[str, str]:
    """Return the source's connector configuration with Apicurio's converter for key and value."""
    kept = {k: v for k, v in source.config().items() if not k.startswith(("key.converter", "value.converter"))}
    converter = {
        "": CONVERTER,
        ".apicurio.registry.url": str(registry.at.registry_core_url),
        # Not apicurio.registry.request.headers.…, which this version does not read.
        ".apicurio.rest.request.headers.Authorization": (
            f"${{file:{registry.at.registry_secrets_file}:registry.authorization}}"
        ),
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
        ".apicurio.registry.headers.enabled": "false",
        # While the registry does not answer, schemas that it has are used from the cache.
        ".apicurio.registry.fault-tolerant-refresh": "true",
    }
    both = {f"{part}.converter{name}": value for part in ("key", "value") for name, value in converter.items()}
    # Debezium logs its configuration. This pattern replaces its own one for values that it masks.
    return {**kept, **both, "custom.sanitize.pattern": "(?i).*(password|secret|authorization)"}


def id_of(value: bytes | None) -> int:
    """Return the schema id of a key or value in Confluent's format."""
    assert value is not None
    assert value[0] == 0
    return int.from_bytes(value[1:5], "big")


def records(source: Source, count: int) -> list[Message]:
    """Wait for this number of records of the table and return them."""

    def read() -> list[Message]:
        return list(source.kafka.peek(source.topic())) if source.kafka.topic(source.topic()) else []

    return until(read, lambda found: len(found) >= count, seconds=60, what=f"{count} records")


def test_records_have_the_ids_of_schemas_in_the_registry(avro: Source, registry: Registry) -> None:
    # Other artifacts have the key's schema already: the id of a schema then differs from the ids of its versions.
    name = f"{avro.schema}.{avro.schema}.ev"
    key = {
        "type": "record",
        "name": "Key",
        "namespace": name,
        "fields": [{"name": "id", "type": "int"}],
        "connect.name": f"{name}.Key",
    }
    text = json.dumps(key, separators=(",", ":"))
    [shared] = {registry.register(f"{avro.schema}-{subject}", text) for subject in ("a", "b", "c")}

    avro.connect.put(avro.schema, avro_config(avro, registry))
    avro.connect.wait_running(avro.schema)
    [first] = records(avro, 1)
    avro.execute("alter table ev add column more text; insert into ev values (2, 'second', 'more')")
    second = records(avro, 2)[1]

    schemas = registry.client
    assert id_of(first.key) == id_of(second.key) == shared != registry.global_id(f"{name}-key")
    assert json.loads(schemas.schema(shared) or "") == key
    values = [json.loads(schemas.schema(id_of(message.value)) or "") for message in (first, second)]
    assert all(value["connect.name"] == f"{name}.Value" for value in values)
    names = [{each["name"] for each in value["fields"]} for value in values]
    assert {"id", "v", "__op", "__lsn"} <= names[0]
    assert names[1] - names[0] == {"more"}
    assert registry.versions(f"{name}-key") == [1]
    assert registry.versions(f"{name}-value") == [1, 2]
    assert schemas.schema(1_000_000) is None


def test_the_token_is_in_no_log_and_no_response_of_connect(avro: Source, registry: Registry) -> None:
    config = avro_config(avro, registry)
    avro.connect.put(avro.schema, config)
    avro.connect.wait_running(avro.schema)
    records(avro, 1)
    token = registry.header.removeprefix("Bearer ")
    plugin = f"/connector-plugins/{config['connector.class']}/config/validate"
    answers = [
        httpx.request(method, avro.at.connect_url + path, json=body, auth=avro.at.connect_login, timeout=60)
        for method, path, body in (
            ("GET", f"/connectors/{avro.schema}", None),
            ("GET", f"/connectors/{avro.schema}/tasks", None),
            ("GET", f"/connectors/{avro.schema}/status", None),
            ("PUT", plugin, {"name": avro.schema, **config}),
        )
    ]
    assert not any(token in answer.raise_for_status().text for answer in answers)
    password = avro.at.connect_secrets_file.read_text().strip().partition("=")[2]
    logs = {name: registry.stack.home.log(name).read_text() for name in ("connect", "registry", "kafka")}
    assert CONVERTER in logs["connect"]
    assert not any(secret in text for secret in (token, password) for text in logs.values())


def test_all_apis_require_the_token(registry: Registry) -> None:
    forged = jwt.encode(
        {"sub": "cdc-lake", "iat": 0, "exp": 4_102_444_800},
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
        algorithm="RS256",
    )
    unsigned = jwt.encode({"sub": "cdc-lake", "iat": 0, "exp": 4_102_444_800}, "", algorithm="none")
    for path in APIS:
        for headers in ({}, {"Authorization": f"Bearer {forged}"}, {"Authorization": f"Bearer {unsigned}"}):
            assert registry.request("GET", path, headers=headers).status_code == 401, (path, headers)
        assert registry.request("GET", path, auth=("sa", "sa")).status_code == 401, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert registry.request(method, APIS[6], headers={"Origin": "http://localhost:8080"}).status_code == 401
    assert registry.request("GET", "/health/ready").status_code == 200


def test_schemas_survive_a_kill_of_the_registry(avro: Source, registry: Registry) -> None:
    expired = {f"{part}.converter.apicurio.registry.check-period-ms": "1" for part in ("key", "value")}
    avro.connect.put(avro.schema, {**avro_config(avro, registry), **expired})
    records(avro, 1)
    schemas = {
        registry.register(f"kept-{number}", json.dumps({"type": "fixed", "name": f"F{number}", "size": number + 1}))
        for number in range(KEPT)
    }
    [pid] = [each.pid for each in registry.stack.status() if each.name == "registry"]
    process = psutil.Process(pid)
    process.kill()  # at once: nothing may be written later
    psutil.wait_procs([process], timeout=10)
    avro.execute("insert into ev values (2, 'while the registry is down')")
    first, second = records(avro, 2)
    assert (id_of(first.key), id_of(first.value)) == (id_of(second.key), id_of(second.value))
    before = registry.header
    registry.stack.up(["registry"])
    assert registry.header == before
    client = registry.client
    sizes = [json.loads(client.schema(each) or "null")["size"] for each in sorted(schemas)]
    assert sizes == list(range(1, KEPT + 1))
    assert client.schema(id_of(first.value)) is not None
    assert registry.register("new", '"string"') not in schemas
