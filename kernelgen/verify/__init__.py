"""Does a target compute what a description means?

Reading order: compare, guard_pages, record, check_independently, own_sizes, worker_diary, guard, known_weights, verify_one,
pool.
"""

from kernelgen.verify.pool import verify_files
from kernelgen.verify.record import Record, Status
from kernelgen.verify.verify_one import verify, verify_file

__all__ = ["Record", "Status", "verify", "verify_file", "verify_files"]
