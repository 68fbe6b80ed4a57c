"""The AWS side as a CDK application: network, engines, roles, buckets, alarms."""
