"""Dagster's web server, which rejects requests of other web pages: `python -m cdc_lake.webserver`.

It takes the arguments of dagster-webserver. Dagster's own server answers any Host, and runs mutations that a page of
another origin sends; it has no option to prevent either (docs/decisions/0035-requests-without-credentials.md).
"""
