"""An independent checker of finished nests: no isl, no schedule, nothing of ``kernelgen.poly``.

Reading order: faults (what may be wrong), terms (what a value stands for), trace (memories and marked loops during a run),
program (a nest as a program that reports its accesses); algebra (arrays of terms), data (inputs whose numbers are known),
constants, operators and pairs (the terms of real and of complex operators), described (the terms that a description asks
for); run (:func:`check`), certificate (the claims of a proof together with what the checker found).
"""

from kernelgen.checker.certificate import Certificate, certify
from kernelgen.checker.faults import CHECKS, Fault
from kernelgen.checker.run import Checked, check

__all__ = ["CHECKS", "Certificate", "Checked", "Fault", "certify", "check"]
