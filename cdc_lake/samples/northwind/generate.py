"""Generate the rows of every table of Northwind; the same seed gives the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

from cdc_lake.samples import geography
from cdc_lake.samples.dice import Dice
from cdc_lake.samples.northwind import catalogue, parties
from cdc_lake.samples.northwind.orders import Order, orders
from cdc_lake.samples.sample_tables import Row, Table, table

SEED = 19960704


def _employees(dice: Dice) -> Iterable[Row]:
    country = geography.COUNTRIES["USA"]
    superiors_first = sorted(enumerate(parties.EMPLOYEES, start=1), key=lambda entry: (entry[1][6] or 0, entry[0]))
    for number, (last, first, title, courtesy, born, hired, boss, _) in superiors_first:
        city, postal_code, region = dice.pick(country.cities)
        address = country.street.format(street=dice.pick(country.streets), number=dice.between(2, 480))
        phone, extension = country.phone.format(dice.between(100, 9999)), str(dice.between(100, 9999))
        notes = f"{first} {last} joined in {hired.year} as {title}."
        yield (number, last, first, title, courtesy, born, hired, address, city, region, postal_code, country.name,
               phone, extension, notes, boss, f"employees/{last.lower()}.bmp")  # fmt: skip


def _products(dice: Dice, suppliers: int) -> Iterable[Row]:
    for number, (name, category, pack, price) in enumerate(catalogue.products(), start=1):
        in_stock, on_order = dice.between(0, 120), 10 * dice.between(0, 7) if dice.chance() < 0.2 else 0
        # The first products have one supplier each, so that every supplier has a product; the others are random.
        supplier = number if number <= suppliers else dice.between(1, suppliers)
        yield (number, name, supplier, category, pack, price, in_stock, on_order, 5 * dice.between(0, 6),
               1 if dice.chance() < 0.1 else 0)  # fmt: skip


def _territories(dice: Dice) -> tuple[list[Row], list[Row]]:
    rows: list[Row] = [
        (f"{1500 + 1730 * number:05d}", name, region) for number, (region, name) in enumerate(geography.TERRITORIES)
    ]
    free = iter(dice.shuffled([row[0] for row in rows]))
    sold_in: list[Row] = [
        (employee, next(free)) for employee, row in enumerate(parties.EMPLOYEES, start=1) for _ in range(row[-1])
    ]
    return rows, sorted(sold_in, key=str)


def _orders(placed: list[Order], ids: list[str], customers: list[parties.Firm]) -> tuple[list[Row], list[Row]]:
    heads: list[Row] = []
    lines: list[Row] = []
    for order in placed:
        to = customers[order.customer]
        heads.append((order.order_id, ids[order.customer], order.employee + 1, order.order_date,
                      order.required_date, order.shipped_date, order.shipper + 1, order.freight, to.company_name,
                      to.address, to.city, to.region, to.postal_code, to.country))  # fmt: skip
        lines.extend((order.order_id, line.product + 1, line.unit_price, line.quantity, line.discount)
                     for line in order.lines)  # fmt: skip
    return heads, lines


def dataset(seed: int = SEED) -> tuple[Table, ...]:
    """Return all 14 tables, parents before children. Customer demographics have no rows, as in the original."""
    dice = Dice(seed)
    customers, suppliers = parties.firms(dice)
    ids = parties.customer_ids(customers)
    territories, employee_territories = _territories(dice)
    products = tuple(_products(dice, len(suppliers)))
    placed, _ = orders([price for _, _, _, price in catalogue.products()], dice)
    heads, lines = _orders(placed, ids, customers)
    firm = "company_name contact_name contact_title address city region postal_code country phone fax"
    return (
        table("categories", "category_id category_name description",
               ((number, *row) for number, row in enumerate(catalogue.CATEGORIES, start=1))),
        table("customer_demographics", "customer_type_id customer_desc", ()),
        table("customers", f"customer_id {firm}",
               ((key, *astuple(row)) for key, row in zip(ids, customers, strict=True))),
        table("customer_customer_demo", "customer_id customer_type_id", ()),
        table("employees", "employee_id last_name first_name title title_of_courtesy birth_date hire_date address "
               "city region postal_code country home_phone extension notes reports_to photo_path",
               _employees(dice)),
        table("suppliers", f"supplier_id {firm}",
               ((number, *astuple(row)) for number, row in enumerate(suppliers, start=1))),
        table("products", "product_id product_name supplier_id category_id quantity_per_unit unit_price "
               "units_in_stock units_on_order reorder_level discontinued", products),
        table("region", "region_id region_description", enumerate(geography.REGIONS, start=1)),
        table("territories", "territory_id territory_description region_id", territories),
        table("employee_territories", "employee_id territory_id", employee_territories),
        table("shippers", "shipper_id company_name phone",
               ((number, name, f"(555) 555-{9800 + number}") for number, name in enumerate(parties.SHIPPERS, 1))),
        table("us_states", "state_id state_abbr state_name state_region",
               ((number, *row) for number, row in enumerate(sorted(geography.US_STATES, key=lambda s: s[1]), 1))),
        table("orders", "order_id customer_id employee_id order_date required_date shipped_date ship_via freight "
               "ship_name ship_address ship_city ship_region ship_postal_code ship_country", heads),
        table("order_details", "order_id product_id unit_price quantity discount", lines),
    )  # fmt: skip
