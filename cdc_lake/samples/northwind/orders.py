"""Generate the orders with their customers, lines and dates, with distributions like the original Northwind's.

Three customers have by far the highest revenue, and the top 20 have most of it. Four customers place infrequent,
high-value orders, and two have no orders. The orders are 10248 to 11077 without 11075, with 2,152 lines in total; most
orders have one to four lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import sqrt

from cdc_lake.samples.dice import Dice

FIRST, LAST, LEFT_OUT = 10248, 11077, 11075
FIRST_DAY, LAST_DAY = date(1996, 7, 4), date(1998, 5, 6)
NEW_PRICES = date(1997, 4, 1)
"""Before this day, prices were a fifth below the list price."""

LINES_OF_LAST, QUANTITY_OF_LAST = 25, 3
LINE_COUNTS = ((6, 3), (5, 33), (4, 125), (3, 247), (2, 283), (1, 137))
"""Pairs of a number of lines and the number of orders with it, except the last order: 25 lines of small quantities."""

DISCOUNTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
DISCOUNT_WEIGHTS = (61, 9, 8, 7, 8, 7)
EMPLOYEE_WEIGHTS = (123, 96, 127, 156, 42, 67, 72, 103, 43)
SHIPPER_WEIGHTS = (249, 325, 255)


@dataclass(frozen=True)
class Segment:
    """Customers with similar orders."""

    orders: tuple[int, ...]
    """The number of orders of each customer."""
    quantity: int
    """The approximate quantity of a line."""
    long_orders: float = 0.0
    """Added to the random score of an order; the orders with the highest scores get the most lines."""
    high_value: float = 0.0
    """The probability that a line has one of the five most expensive products, instead of any product."""


SEGMENTS = (
    Segment((31, 30, 28), quantity=41, long_orders=0.45),
    Segment((19, 18), quantity=33, long_orders=0.3),
    Segment((17, 16, 16, 16, 14, 14, 14, 14, 14, 12, 12, 12, 12, 11, 11), quantity=25, long_orders=0.2),
    Segment((11,) * 8 + (10,) * 10 + (9,) * 8 + (8,) * 4 + (7,) * 3, quantity=17),
    Segment((7,) * 8 + (6,) * 8 + (5,) * 7 + (4,) * 7 + (3,) * 2, quantity=10),
    Segment((4, 3, 3, 2), quantity=25, high_value=0.9),
    Segment((0, 0), quantity=1),
)


@dataclass(frozen=True)
class Line:
    """A line of an order; `product` is an index into the catalogue, `discount` a fraction of the price."""

    product: int
    unit_price: float
    quantity: int
    discount: float


@dataclass(frozen=True)
class Order:
    """An order; `customer`, `employee` and `shipper` are indexes into their lists."""

    order_id: int
    customer: int
    employee: int
    shipper: int
    order_date: date
    required_date: date
    shipped_date: date | None
    freight: float
    lines: tuple[Line, ...]


def _order_dates(count: int) -> list[date]:
    """Return the orders' dates, all working days; the number of orders per day more than doubles over time."""
    span = (LAST_DAY - FIRST_DAY).days + 1
    days = [FIRST_DAY + timedelta(days=number) for number in range(span)]
    days = [day for day in days if day.weekday() < 5]
    done = ((number + 0.5) / count for number in range(count))
    elapsed = [(sqrt(0.36 + 1.6 * share) - 0.6) / 0.8 for share in done]
    return [days[int(share * len(days))] for share in elapsed]


def _customers_of_orders(dice: Dice) -> tuple[list[int], list[Segment]]:
    """Return the customer of each order, and the segment of each customer, assigned at random."""
    customers = [(segment, orders) for segment in SEGMENTS for orders in segment.orders]
    customers = dice.shuffled(customers)
    buyers = dice.shuffled([customer for customer, (_, orders) in enumerate(customers) for _ in range(orders)])
    segments = [segment for segment, _ in customers]
    # The last order, which has 25 lines, belongs to a customer of the second segment.
    last = next(at for at in range(len(buyers) - 1, 0, -1) if segments[buyers[at]] is SEGMENTS[1])
    buyers[-1], buyers[last] = buyers[last], buyers[-1]
    return buyers, segments


def _line_counts(buyers: list[int], segments: list[Segment], dice: Dice) -> list[int]:
    scores = [dice.chance() + segments[buyer].long_orders for buyer in buyers[:-1]]
    by_score = sorted(range(len(scores)), key=lambda at: -scores[at])
    counts = [0] * len(scores)
    lengths = [lines for lines, orders in LINE_COUNTS for _ in range(orders)]
    for at, lines in zip(by_score, lengths, strict=True):
        counts[at] = lines
    return [*counts, LINES_OF_LAST]


def _lines(count: int, segment: Segment, day: date, prices: list[float], dice: Dice) -> tuple[Line, ...]:
    most_expensive = sorted(range(len(prices)), key=lambda product: -prices[product])[:5]
    chosen: set[int] = set()
    while len(chosen) < count:
        among = most_expensive if dice.chance() < segment.high_value else range(len(prices))
        chosen.add(dice.pick(among))
    lines = []
    for product in sorted(chosen):
        price = prices[product] if day >= NEW_PRICES else round(prices[product] * 0.8, 2)
        quantity = max(1, min(130, round(segment.quantity * (0.2 + 1.1 * dice.chance() + 0.6 * dice.chance()))))
        lines.append(Line(product, price, quantity, dice.weighted(DISCOUNTS, DISCOUNT_WEIGHTS)))
    return tuple(lines)


def _shipped(day: date, dice: Dice) -> date | None:
    shipped = day + timedelta(days=dice.between(1, 10) + (dice.between(5, 25) if dice.chance() < 0.15 else 0))
    return shipped if shipped <= LAST_DAY else None


def orders(prices: list[float], dice: Dice) -> tuple[list[Order], list[Segment]]:
    """Return all orders by ascending id, and the segment of each customer, by index.

    `prices` are the list prices by product index.
    """
    ids = [order_id for order_id in range(FIRST, LAST + 1) if order_id != LEFT_OUT]
    buyers, segments = _customers_of_orders(dice)
    counts = _line_counts(buyers, segments, dice)
    placed = []
    for order_id, buyer, count, day in zip(ids, buyers, counts, _order_dates(len(ids)), strict=True):
        segment = segments[buyer] if order_id != LAST else replace(segments[buyer], quantity=QUANTITY_OF_LAST)
        lines = _lines(count, segment, day, prices, dice)
        value = sum(line.unit_price * line.quantity for line in lines)
        order = Order(
            order_id=order_id,
            customer=buyer,
            employee=dice.weighted(range(len(EMPLOYEE_WEIGHTS)), EMPLOYEE_WEIGHTS),
            shipper=dice.weighted(range(len(SHIPPER_WEIGHTS)), SHIPPER_WEIGHTS),
            order_date=day,
            required_date=day + timedelta(days=dice.weighted((28, 14, 42), (84, 8, 8))),
            shipped_date=_shipped(day, dice),
            freight=round(0.2 + value * (0.01 + 0.08 * dice.chance()), 2),
            lines=lines,
        )
        placed.append(order if order_id != LAST else replace(order, shipped_date=None))
    return placed, segments
