"""Programs that measure the jobs: landing, upserts, and what they cost beside other table formats."""
