-- The database's user of Debezium and Dagster, run once by a person after the database stack:
--
--   psql "host=… dbname=… user=postgres sslmode=verify-full sslrootcert=global-bundle.pem" \
--        -v ON_ERROR_STOP=1 -v password="$PASSWORD" -v schema=datalake -f replication.sql
--
-- PASSWORD comes out of the secret `cdc-lake-<environment>/source/replication`; docs/infrastructure.md has the commands.
-- It can be repeated: it sets the password that is in the secret now.

SELECT 'CREATE ROLE cdc_lake LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cdc_lake') \gexec

-- The server writes statements into its log; this one has the password in it.
SET log_statement = 'none';
ALTER ROLE cdc_lake WITH LOGIN PASSWORD :'password';

-- On RDS and Aurora nobody may say REPLICATION: this role stands for it.
GRANT rds_replication TO cdc_lake;

-- Debezium reads the snapshot. Dagster's `source` asset makes publication, heartbeat table and triggers: for a
-- publication and a trigger it has to own the tables, so it is given the role that does.
SELECT format('GRANT CREATE ON DATABASE %I TO cdc_lake', current_database()) \gexec
SELECT format('CREATE SCHEMA IF NOT EXISTS %I', :'schema') \gexec
SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO cdc_lake', :'schema') \gexec
SELECT format('GRANT %I TO cdc_lake', owner) FROM (
    SELECT DISTINCT tableowner AS owner FROM pg_tables WHERE schemaname = :'schema' AND tableowner <> 'cdc_lake'
) AS owners \gexec
