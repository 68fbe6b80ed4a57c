"""Where dashboards are published: HTML pages on disk (local profile) or QuickSight (aws profile)."""
