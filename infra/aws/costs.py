"""`python -m infra.aws.costs [--write PAGE | --check PAGE]`: what each environment costs a month, as a page.

Here: multiplying, and the page. Not here: quantities (quantities.py) and prices (prices.yaml).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.aws.prices import Price, PriceError, Prices, Workload, prices, workload
from infra.aws.quantities import HOURS, Line, lines
from infra.aws.sizes import Size, SizesError, sizes

_COMMAND = ".venv/bin/python -m infra.aws.costs --write docs/aws-costs.md"
_INTRODUCTION = f"""\
# What it costs on AWS

Made by `{_COMMAND}`; `make infra` checks that it still is what comes out.

**These are estimates from list prices in us-east-1 as they are remembered from AWS's pages, not quotes: check the
prices below before a decision hangs on one.** No tax, no free tier, no savings plan, no traffic to the internet or
between zones, no backups, no support. A month has {HOURS} hours; all amounts are US dollars.

*Idle* is what an environment costs because it is there: its stacks are deployed, a connector runs for each pipeline,
the assumed data is stored, nothing changes but heartbeats and no Spark job runs. *At work* adds the assumed load below.
"""


@dataclass(frozen=True)
class Cost:
    """Dollars a month of one line."""

    line: Line
    price: Price

    @property
    def idle(self) -> float:
        """While nothing changes."""
        return self.line.idle * self.price.price

    @property
    def work(self) -> float:
        """With the assumed load."""
        return self.line.work * self.price.price


def costs(size: Size, work: Workload, table: Prices) -> list[Cost]:
    """Every line of an environment with its price. Raises PriceError where one is missing."""
    return [Cost(line, table.of(line.price)) for line in lines(size, work)]


def page(environments: Mapping[str, Size], table: Prices) -> str:
    """The page in Markdown. Raises PriceError."""
    works = {name: workload(name) for name in environments}
    found = {name: costs(size, works[name], table) for name, size in environments.items()}
    parts = list(dict.fromkeys(cost.line.part for each in found.values() for cost in each))
    used = {cost.line.price for each in found.values() for cost in each}
    sections = [_INTRODUCTION, "## By part\n\n" + _summary(found, parts)]
    sections += [f"## {name}\n\n" + _detail(each) for name, each in found.items()]
    sections += ["## The assumed load of a month\n\n" + _works(works)]
    sections += ["## Prices\n\n" + _price_table(table, used)]
    return "\n".join(sections)


def _summary(found: Mapping[str, Sequence[Cost]], parts: Sequence[str]) -> str:
    rows = []
    for part in parts:
        own = {name: [cost for cost in each if cost.line.part == part] for name, each in found.items()}
        rows.append([part, *_sums(own)])
    rows.append(["**all**", *_sums(found)])
    return _table(["part", *(f"{name} {state}" for name in found for state in ("idle", "at work"))], rows)


def _sums(found: Mapping[str, Sequence[Cost]]) -> list[str]:
    return [
        f"{total:,.2f}"
        for each in found.values()
        for total in (sum(cost.idle for cost in each), sum(cost.work for cost in each))
    ]


def _detail(each: Sequence[Cost]) -> str:
    rows = [
        [
            cost.line.part,
            f"`{cost.line.price}`",
            f"{cost.price.price:g}",
            *(f"{amount:,.6g}" for amount in (cost.line.idle, cost.line.work)),
            *(f"{dollars:,.2f}" for dollars in (cost.idle, cost.work)),
        ]
        for cost in each
    ]
    head = ["part", "price", "$ each", "idle quantity", "quantity at work", "idle $", "$ at work"]
    return _table(head, rows)


def _works(works: Mapping[str, Workload]) -> str:
    fields = list(Workload.model_fields)
    return _table(["", *works], [[f"`{name}`", *(f"{getattr(w, name):g}" for w in works.values())] for name in fields])


def _price_table(table: Prices, used: set[str]) -> str:
    rows = [
        [
            f"`{name}`",
            f"{entry.price:g}",
            entry.unit,
            f"<{entry.source}>",
            str(entry.date),
            "" if name in used else "no",
        ]
        for name, entry in table.entries.items()
    ]
    return _table(["price", "$", "for a", "source (as remembered)", "written down", "used above"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print, write or check the page, and return the exit code: 1 where it is another, 2 where it can't be made."""
    parser = argparse.ArgumentParser(prog="python -m infra.aws.costs", description="What the environments cost.")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", type=Path, help="write the page there")
    group.add_argument("--check", type=Path, help="compare the page there")
    asked = parser.parse_args(arguments)
    try:
        made = page(sizes(), prices())
    except (SizesError, PriceError) as error:
        print(error, file=sys.stderr)
        return 2
    if asked.write:
        asked.write.write_text(made, encoding="utf-8")
    elif not asked.check:
        print(made)
    elif not asked.check.exists() or asked.check.read_text(encoding="utf-8") != made:
        print(f"{asked.check} is not what sizes, workloads and prices give now: run `{_COMMAND}`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
