"""Machine code that was compiled before, loaded and called without a compiler: no islpy, no llvmlite, no nest.

Reading order: code (what is loaded), elf (how an object becomes it), library, mapped (its memory); team (threads);
signature, wrapper, entry, table, session, call (how kernels are called, and sessions of a library between them); lines (the
memory of weights); records (kernels in files), processor (what code needs of one).
"""
