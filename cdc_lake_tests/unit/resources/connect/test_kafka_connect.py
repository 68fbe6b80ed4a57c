"""KafkaConnect against a fake worker: order of calls, retries, errors."""

from collections.abc import Iterator

import pytest
from httpx import BasicAuth

from cdc_lake_tests.unit.resources.fake_connect import FakeConnect, fake_connect, status
from resources.connect import kafka_connect
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import (
    AccessRefused,
    ConnectorConfigInvalid,
    ConnectorFailed,
    ConnectorMissing,
    ConnectRequestFailed,
    Unreachable,
    WaitTimedOut,
)

CONFIG = {"connector.class": "C", "tasks.max": "1"}
STORED = {"name": "nw", **CONFIG}
AT = "/connectors/nw"
BUSY = (409, {"error_code": 409, "message": "rebalance in process"})
TRACE = "org.E: top\n\tat x\nCaused by: org.F: middle\nCaused by: org.G: the slot is gone.\n\tat y"


@pytest.fixture
def worker() -> Iterator[FakeConnect]:
    with fake_connect() as fake:
        yield fake


def connect(worker: FakeConnect, rebalance_seconds: float = 2) -> KafkaConnect:
    return KafkaConnect(url=worker.url + "/", hint="Run `cdc-lake up`.", rebalance_seconds=rebalance_seconds)


def test_put_creates_a_connector(worker: FakeConnect) -> None:
    worker.on(f"PUT {AT}/config", (201, {}))
    assert connect(worker).put("nw", CONFIG) == "created"


def test_the_login_is_sent_and_a_refused_login_names_the_user(worker: FakeConnect) -> None:
    worker.on("GET /connector-plugins", (200, []))
    with_login = KafkaConnect(url=worker.url, user="cdc-lake", password="pa55word")
    assert with_login.plugins() == frozenset()
    assert worker.authorization == BasicAuth("cdc-lake", "pa55word")._auth_header
    assert "pa55word" not in repr(with_login)
    worker.on("GET /connector-plugins", (401, None))
    with pytest.raises(AccessRefused, match=r"Cannot use Kafka Connect: .* rejects the login of user cdc-lake"):
        with_login.plugins()
    with pytest.raises(AccessRefused, match=r"requires a password\. Run `cdc-lake up`"):
        connect(worker).plugins()
    assert worker.authorization == ""


def test_put_without_a_difference_changes_nothing(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/config", (200, STORED))
    worker.on(f"GET {AT}/status", status("RUNNING", "RUNNING"))
    assert connect(worker).put("nw", CONFIG) == "unchanged"
    assert not [request for request in worker.requests if not request.startswith("GET")]


def test_put_updates_a_different_configuration(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/config", (200, {**STORED, "gone": "1"}))
    worker.on(f"GET {AT}/status", status("RUNNING", "RUNNING"))
    worker.on(f"PUT {AT}/config", (200, {}))
    assert connect(worker).put("nw", CONFIG) == "updated"


def test_put_resumes_a_stopped_connector(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/config", (200, STORED))
    worker.on(f"GET {AT}/status", status("STOPPED"))
    worker.on(f"PUT {AT}/resume", (202, None))
    assert connect(worker).put("nw", CONFIG) == "updated"
    assert f"PUT {AT}/resume" in worker.requests


def test_a_rejected_configuration_contains_the_workers_message(worker: FakeConnect) -> None:
    worker.on(f"PUT {AT}/config", (400, {"error_code": 400, "message": "database.hostname: refused"}))
    with pytest.raises(ConnectorConfigInvalid, match=r"connector nw: Kafka Connect rejects.*database\.hostname"):
        connect(worker).put("nw", CONFIG)


def test_a_call_during_a_rebalance_is_retried(worker: FakeConnect) -> None:
    worker.on(f"PUT {AT}/config", BUSY, BUSY, (201, {}))
    assert connect(worker).put("nw", CONFIG) == "created"


def test_a_call_while_the_worker_starts_is_retried(worker: FakeConnect) -> None:
    starting = (404, "<h2>HTTP ERROR 404 Not Found</h2>")
    worker.on(f"GET {AT}/config", starting, starting, (200, STORED))
    assert connect(worker).get("nw") == STORED


def test_a_lasting_rebalance_raises_an_error(worker: FakeConnect) -> None:
    worker.on(f"PUT {AT}/config", BUSY)
    with pytest.raises(ConnectRequestFailed, match="rebalance in process"):
        connect(worker, 0.3).put("nw", CONFIG)


def test_wait_running_waits_for_all_tasks(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/status", status("UNASSIGNED"), status("RUNNING"), status("RUNNING", "RUNNING"))
    assert connect(worker).wait_running("nw", timeout_seconds=5).is_running()


def test_a_lasting_failure_ends_the_wait_early_with_its_cause(
    worker: FakeConnect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_connect, "SETTLE_SECONDS", 0.3)
    worker.on(f"GET {AT}/status", status("RUNNING", "FAILED", trace=TRACE))
    with pytest.raises(ConnectorFailed, match=r"task 0 FAILED: org\.G: the slot is gone\. Fix"):
        connect(worker).wait_running("nw", timeout_seconds=60)


def test_a_failure_from_before_the_update_does_not_end_the_wait(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/status", status("RUNNING", "FAILED", trace=TRACE), status("RUNNING", "RUNNING"))
    assert connect(worker).wait_running("nw", timeout_seconds=60).is_running()


def test_a_timeout_reports_the_last_state(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/status", status("RUNNING", "UNASSIGNED"))
    with pytest.raises(WaitTimedOut, match=r"task 0 UNASSIGNED.*cdc-lake up"):
        connect(worker).wait_running("nw", timeout_seconds=0.5)


def test_a_missing_connector_is_named(worker: FakeConnect) -> None:
    with pytest.raises(ConnectorMissing, match=r"connector nw: .*has no such connector"):
        connect(worker).wait_running("nw")
    assert connect(worker).status("nw") is None
    assert connect(worker).delete("nw") is False


def test_only_failed_tasks_are_restarted(worker: FakeConnect) -> None:
    worker.on(f"GET {AT}/status", status("RUNNING", "RUNNING", "FAILED"))
    worker.on(f"POST {AT}/restart?includeTasks=true&onlyFailed=true", (202, {}))
    assert connect(worker).restart_failed("nw") == (1,)
    worker.on(f"GET {AT}/status", status("RUNNING", "RUNNING"))
    assert connect(worker).restart_failed("nw") == ()


def test_delete_stops_the_connector_and_removes_its_offsets_first(worker: FakeConnect) -> None:
    gone = (404, {"message": "gone"})
    worker.on(f"GET {AT}/config", (200, STORED), gone)
    worker.on(f"GET {AT}/status", status("RUNNING", "RUNNING"), status("STOPPED", "RUNNING"), status("STOPPED"), gone)
    worker.on(f"PUT {AT}/stop", (204, None))
    worker.on(f"DELETE {AT}/offsets", (200, {"message": "done"}))
    worker.on(f"DELETE {AT}", BUSY, (204, None))
    assert connect(worker).delete("nw") is True
    changes = [request for request in worker.requests if not request.startswith("GET")]
    assert changes == [f"PUT {AT}/stop", f"DELETE {AT}/offsets", f"DELETE {AT}", f"DELETE {AT}"]


def test_an_unreachable_worker_is_reported_with_the_hint() -> None:
    with fake_connect() as worker:
        resource = connect(worker, 0.3)
    with pytest.raises(Unreachable, match=r"Cannot reach Kafka Connect for .*cdc-lake up"):
        resource.status("nw")
