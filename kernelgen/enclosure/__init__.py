"""Between which numbers a result must lie: every operator on intervals, widened by the rounding of its data type.

This is running error analysis on the very inputs of a run: operands are known up to the roundings before them, an
operator maps their ranges, and its own rounding is added in units in the last place. The formulas are written from the
operators' definitions; those of the code generator (:mod:`kernelgen.composite.scalar_rules`) are not used.

Reading order: interval (a range for every element; ranges that say nothing), rounding (data types and units in the last
place), arithmetic, functions, conditions, integers, complexes (scalar operators), sums (the roundings of many terms), reduced
(reductions, products, scans), stored (products with stored weights), moves (operators that only move elements), table
(operator -> rule), conversions (data types), declared (operators of users' packages), evaluate (a description), agree (are
results inside?).
"""

from kernelgen.enclosure.agree import Difference, agree
from kernelgen.enclosure.evaluate import enclose, enclosed_values
from kernelgen.enclosure.interval import Interval

__all__ = ["Difference", "Interval", "agree", "enclose", "enclosed_values"]
