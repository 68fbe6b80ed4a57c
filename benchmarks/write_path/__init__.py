"""Programs that measure the jobs: landing, upserts, and their cost compared with other table formats."""
