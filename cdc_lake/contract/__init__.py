"""The contracts between the stages, in plain Python that jobs, assets, CLI and tests share.

Here: names of objects, manifests, leases, schemas, the order of changes. Not here: Dagster, Spark.
"""
