"""Imported by the process that is forked for each run (run_processes.py): builds the definitions before the forks.

If they cannot be built here, each run tries it itself and reports why it failed.
"""

import logging

from cdc_lake import definitions

try:
    definitions.prebuild()
except Exception:
    logging.getLogger(__name__).exception("Cannot build the definitions in advance: each run builds them itself.")
