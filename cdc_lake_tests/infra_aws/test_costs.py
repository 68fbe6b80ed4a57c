"""The estimate: arithmetic, completeness, and that the page is what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake_tests.infra_aws.conftest import SIZES, Synthesized
from infra.aws import costs, prices
from infra.aws.prices import PriceError, Prices
from infra.aws.quantities import lines
from infra.aws.sizes import FILE, size, sizes

PAGE = FILE.parents[2] / "docs" / "aws-costs.md"


def of(name: str, part: str) -> tuple[float, float]:
    """Idle and at work, dollars a month."""
    found = costs.costs(size(name), prices.workload(name), prices.prices())
    own = [cost for cost in found if cost.line.part == part]
    return sum(cost.idle for cost in own), sum(cost.work for cost in own)


def test_brokers_by_hand() -> None:
    assert of("dev", "MSK") == pytest.approx((2 * 730 * 0.204 + 2 * 50 * 0.10,) * 2)


def test_aurora_by_hand() -> None:
    idle, work = of("small", "Aurora")
    assert idle == pytest.approx(2 * 730 * 1 * 0.12 + 200 * 0.10)
    assert work == pytest.approx(2 * 730 * 4 * 0.12 + 200 * 0.10 + 200 * 0.20)


def test_spark_costs_nothing_while_idle_without_a_cluster() -> None:
    assert of("dev", "EMR Serverless")[0] == 0
    assert of("dev", "EMR cluster") == (0, 0)
    assert of("production", "EMR cluster")[0] == pytest.approx(730 * (0.308 + 0.077 + 2 * (0.4032 + 0.1008)))


@pytest.mark.parametrize("name", SIZES)
def test_work_costs_no_less_than_idling(name: str) -> None:
    assert all(line.idle <= line.work for line in lines(size(name), prices.workload(name)))


def test_counts_are_those_of_the_stacks(environment: Synthesized) -> None:
    found = {line.price: line.idle for line in lines(environment.size, prices.workload(environment.size.name))}
    kinds = [kind for _, kind, _ in environment.resources()]
    assert found["alarm_month"] == kinds.count("AWS::CloudWatch::Alarm")
    assert found["secret_month"] == kinds.count("AWS::SecretsManager::Secret")
    assert found["nat_gateway_hour"] == kinds.count("AWS::EC2::NatGateway") * 730
    endpoints = environment.of("network", "AWS::EC2::VPCEndpoint").values()
    zones = sum(len(each["SubnetIds"]) for each in endpoints if each["VpcEndpointType"] == "Interface")
    assert found["interface_endpoint_hour"] == zones * 730


def test_serverless_kafka_has_its_own_lines() -> None:
    kafka = size("dev").kafka.model_copy(update={"kind": "serverless"})
    chosen = size("dev").model_copy(update={"kafka": kafka})
    found = {line.price for line in lines(chosen, prices.workload("dev")) if line.part == "MSK"}
    assert found == {name for name in prices.prices().entries if name.startswith("msk_serverless_")}


def test_a_price_that_is_missing_is_named() -> None:
    kafka = size("dev").kafka.model_copy(update={"broker_type": "kafka.m7g.16xlarge"})
    chosen = size("dev").model_copy(update={"kafka": kafka})
    with pytest.raises(PriceError, match="has no msk_m7g_16xlarge_hour: add its list price, its source"):
        costs.costs(chosen, prices.workload("dev"), prices.prices())


def test_a_price_without_source_or_date_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("some_hour: {price: 0, unit: hour}", encoding="utf-8")
    with pytest.raises(PriceError, match=r"some_hour\.price: .*some_hour\.source: Field required; some_hour\.date"):
        prices.prices(file)


def test_an_environment_without_a_workload_is_named(tmp_path: Path) -> None:
    file = tmp_path / "workloads.yaml"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(PriceError, match="has no workload for dev: add an entry"):
        prices.workload("dev", file)


def test_the_page_is_what_comes_out_and_another_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert costs.main(["--check", str(PAGE)]) == 0
    other = tmp_path / "page.md"
    assert costs.main(["--check", str(other)]) == 1
    assert costs.main(["--write", str(other)]) == 0
    assert other.read_text() == PAGE.read_text()
    other.write_text(other.read_text().replace("730", "731", 1))
    assert costs.main(["--check", str(other)]) == 1
    assert "is not what sizes, workloads and prices give now" in capsys.readouterr().err


def test_the_total_is_the_sum_of_its_parts() -> None:
    page = costs.page({"dev": size("dev")}, prices.prices())
    [total] = [line for line in page.splitlines() if line.startswith("| **all**")]
    whole = sum(cost.work for cost in costs.costs(size("dev"), prices.workload("dev"), prices.prices()))
    assert total.split("|")[3].strip() == f"{whole:,.2f}"


def test_prices_change_the_page() -> None:
    table = prices.prices()
    raised = {name: each.model_copy(update={"price": each.price * 2}) for name, each in table.entries.items()}
    assert costs.page(sizes(), Prices(raised)) != costs.page(sizes(), table)
