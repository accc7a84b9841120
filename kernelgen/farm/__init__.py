"""Work for many processes and machines: pure functions of bytes to bytes over any ``concurrent.futures.Executor``.

Reading order: child, sandbox, journal, crews, work.
"""

from kernelgen.farm.crews import Crew, crew_of, local
from kernelgen.farm.journal import Journal
from kernelgen.farm.sandbox import call
from kernelgen.farm.work import Policy, answers

__all__ = ["Crew", "Journal", "Policy", "answers", "call", "crew_of", "local"]
