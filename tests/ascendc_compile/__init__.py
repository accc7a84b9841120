"""Whether printed AscendC is C++: ``python -m tests.ascendc_compile`` parses it against declarations of the public API.

Reading order: kernel_operator.h (the declarations, written from the manual, without a look at kernelgen), compiler (asks
clang in a process of its own), front_end (what runs in that process), kernels (the texts of files and of random kernels).
"""
