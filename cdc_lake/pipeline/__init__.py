"""The CdcPipeline component: from a YAML file to assets, checks and sensors.

Here: everything that knows Dagster's graph. Not here: the systems (resources/) and the data work (jobs/).
"""
