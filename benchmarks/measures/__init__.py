"""What the programs measure with: time, CPU, memory, and the lag of each stage."""
