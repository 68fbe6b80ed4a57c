"""The contracts between the stages, in plain Python: jobs, assets, the CLI and tests share them."""
