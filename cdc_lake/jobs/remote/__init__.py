"""Jobs on another machine: the program that spark-submit runs, and how specs and reports travel."""
