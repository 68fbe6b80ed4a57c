"""The files that the stack runs (jars, plugins, Java runtimes, class archives), fetched into the cache folder."""
