"""Does a target compute what a description means?

Reading order: record (what one verification found), compare (AKG's tolerances), examine (the independent
checker on a kernel), fences (arrays against pages without access), diary (what a process died of), guard (a kernel
between fences), own_sizes (what a kernel
does at the size of its file, and where that ran), one (one description), pool (many files in worker processes).
"""

from kernelgen.verify.one import verify, verify_file
from kernelgen.verify.pool import verify_files
from kernelgen.verify.record import Record, Status

__all__ = ["Record", "Status", "verify", "verify_file", "verify_files"]
