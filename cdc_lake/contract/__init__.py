"""The contracts between the stages, in plain Python that jobs, assets, CLI and tests share."""
