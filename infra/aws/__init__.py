"""The AWS side as a CDK application: network, engines, roles, buckets, alarms.

Here: what CloudFormation owns. Not here: plugins, connectors, tables, queries and QuickSight objects, which Dagster
makes and changes with the pipelines that need them.
"""
