-- The tables of the museum's collection, with the columns of its published files.
CREATE TABLE artists (
    artist_id   integer PRIMARY KEY,
    name        varchar(200),
    nationality varchar(50),
    gender      varchar(25),
    birth_year  integer,
    death_year  integer
);

-- No foreign key: the files of some exhibitions name artists that the artists' file lacks. Sizes are texts there.
CREATE TABLE artworks (
    artwork_id       integer PRIMARY KEY,
    title            varchar(500),
    artist_id        integer NOT NULL,
    name             varchar(500),
    date             integer,
    medium           varchar(250),
    dimensions       text,
    acquisition_date text,
    credit           text,
    catalogue        varchar(250),
    department       varchar(250),
    classification   varchar(250),
    object_number    text,
    diameter_cm      text,
    circumference_cm text,
    height_cm        text,
    length_cm        text,
    width_cm         text,
    depth_cm         text,
    weight_kg        text,
    durations        integer
);
