-- The tables of the sample database, modelled on Northwind, a trading company's orders.
-- Run with search_path set to the schema that receives them (the loader sets it to "datalake").
-- Prices, freight and discounts are `real`, as in the original: reading them exactly is part of the sample.

CREATE TABLE categories (
    category_id     smallint PRIMARY KEY,
    category_name   varchar(15) NOT NULL,
    description     text,
    picture         bytea
);

CREATE TABLE customer_demographics (
    customer_type_id    varchar(10) PRIMARY KEY,
    customer_desc       text
);

CREATE TABLE customers (
    customer_id     varchar(5) PRIMARY KEY,
    company_name    varchar(40) NOT NULL,
    contact_name    varchar(30),
    contact_title   varchar(30),
    address         varchar(60),
    city            varchar(15),
    region          varchar(15),
    postal_code     varchar(10),
    country         varchar(15),
    phone           varchar(24),
    fax             varchar(24)
);

CREATE TABLE customer_customer_demo (
    customer_id         varchar(5) REFERENCES customers,
    customer_type_id    varchar(10) REFERENCES customer_demographics,
    PRIMARY KEY (customer_id, customer_type_id)
);

CREATE TABLE employees (
    employee_id         smallint PRIMARY KEY,
    last_name           varchar(20) NOT NULL,
    first_name          varchar(10) NOT NULL,
    title               varchar(30),
    title_of_courtesy   varchar(25),
    birth_date          date,
    hire_date           date,
    address             varchar(60),
    city                varchar(15),
    region              varchar(15),
    postal_code         varchar(10),
    country             varchar(15),
    home_phone          varchar(24),
    extension           varchar(4),
    photo               bytea,
    notes               text,
    reports_to          smallint REFERENCES employees,
    photo_path          varchar(255)
);

CREATE TABLE suppliers (
    supplier_id     smallint PRIMARY KEY,
    company_name    varchar(40) NOT NULL,
    contact_name    varchar(30),
    contact_title   varchar(30),
    address         varchar(60),
    city            varchar(15),
    region          varchar(15),
    postal_code     varchar(10),
    country         varchar(15),
    phone           varchar(24),
    fax             varchar(24),
    homepage        text
);

CREATE TABLE products (
    product_id          smallint PRIMARY KEY,
    product_name        varchar(40) NOT NULL,
    supplier_id         smallint REFERENCES suppliers,
    category_id         smallint REFERENCES categories,
    quantity_per_unit   varchar(20),
    unit_price          real,
    units_in_stock      smallint,
    units_on_order      smallint,
    reorder_level       smallint,
    discontinued        integer NOT NULL
);

CREATE TABLE region (
    region_id           smallint PRIMARY KEY,
    region_description  varchar(60) NOT NULL
);

CREATE TABLE territories (
    territory_id            varchar(20) PRIMARY KEY,
    territory_description   varchar(60) NOT NULL,
    region_id               smallint NOT NULL REFERENCES region
);

CREATE TABLE employee_territories (
    employee_id     smallint REFERENCES employees,
    territory_id    varchar(20) REFERENCES territories,
    PRIMARY KEY (employee_id, territory_id)
);

CREATE TABLE shippers (
    shipper_id      smallint PRIMARY KEY,
    company_name    varchar(40) NOT NULL,
    phone           varchar(24)
);

CREATE TABLE us_states (
    state_id        smallint PRIMARY KEY,
    state_name      varchar(100),
    state_abbr      varchar(2),
    state_region    varchar(50)
);

-- Wider than the original's smallint: traffic generators use ids above 32,767.
CREATE TABLE orders (
    order_id            integer PRIMARY KEY,
    customer_id         varchar(5) REFERENCES customers,
    employee_id         smallint REFERENCES employees,
    order_date          date,
    required_date       date,
    shipped_date        date,
    ship_via            smallint REFERENCES shippers,
    freight             real,
    ship_name           varchar(40),
    ship_address        varchar(60),
    ship_city           varchar(15),
    ship_region         varchar(15),
    ship_postal_code    varchar(10),
    ship_country        varchar(15)
);

CREATE TABLE order_details (
    order_id    integer REFERENCES orders,
    product_id  smallint REFERENCES products,
    unit_price  real NOT NULL,
    quantity    smallint NOT NULL,
    discount    real NOT NULL,
    PRIMARY KEY (order_id, product_id)
);
