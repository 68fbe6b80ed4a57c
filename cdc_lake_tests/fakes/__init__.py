"""The resources as small fakes in memory: they answer like the systems, and note what is removed or restarted.

Here: state and answers, a file a system. Not here: the object store of the contract's tests (memory_store.py), and
a pipeline's events flowing through all of them (world.py).
"""
