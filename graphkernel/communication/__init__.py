"""How processes give each other arrays: one small protocol, and who keeps it.

Reading order: communicator, groups, agreement, chunks, alone, in_memory, mpi, torch_distributed.

``mpi`` and ``torch_distributed`` are the two for real processes, each around a library that is imported when one is made:
``pip install '.[dist]'``. ``alone`` is a group of one process, ``in_memory`` joins threads of one process, for tests.
"""
