"""Results of the programs: files, judgement by the goals, and the page."""
