"""What the optimizer asks of the computer around it: files within bounds, the environment, logs.

Reading order: array_files, environment, freed_memory, logs, numpy_threads, paths.
"""
