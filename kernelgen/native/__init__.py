"""Machine code that was compiled before, loaded and called without a compiler: no islpy, no llvmlite, no nest.

Reading order: code (what is loaded), elf (how an object becomes it), library, mapped (its memory); team (threads);
signature, wrapper, entry, table, call (how kernels are called); lines (the memory of weights); records (kernels in files),
processor (what code needs of one).
"""
