"""What the stack runs: jars, plugins, Java runtimes, and class archives, fetched into the cache folder."""
