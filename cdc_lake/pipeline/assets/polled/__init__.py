"""The source and topic stages of a pipeline that polls its tables."""

from cdc_lake.pipeline.assets.polled import source, topic

__all__ = ["source", "topic"]
