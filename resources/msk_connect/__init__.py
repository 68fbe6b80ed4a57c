"""Amazon MSK Connect: the Dagster resource, custom plugins and connectors."""
