"""The CdcPipeline component: from a YAML file to assets, checks and sensors."""
