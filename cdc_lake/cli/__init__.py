"""The command line `cdc-lake`: commands parse options and print results.

The work is done in other packages, most of it in cdc_lake.pipeline.operations and infra.local.
"""
