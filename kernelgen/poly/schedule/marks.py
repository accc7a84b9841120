"""Marks in schedule trees: isl's mark nodes carry a name, which is written and read here alone.

thread 128        in a schedule
thread 128 c3     in what loops are read from: with the variable of the loop that is meant
unrolled c5       there alone: of a loop that is written out
"""

from __future__ import annotations

import islpy as isl

from kernelgen.nest.marks import Mark

_UNROLLED = "unrolled"


def insert_mark(node: isl.ScheduleNode, mark: Mark) -> isl.ScheduleNode:
    """The mark above a node."""
    return node.insert_mark(isl.Id(str(mark), context=node.get_ctx()))


def is_mark(node: isl.ScheduleNode) -> bool:
    """Whether the node is a mark."""
    return node.get_type() == isl.schedule_node_type.mark


def mark_of(node: isl.ScheduleNode) -> Mark:
    """What a mark node says. Raises ArgumentError for a name that is no mark's."""
    return Mark.from_text(node.mark_get_id().get_name())


def with_variable(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """A mark node that also names the variable of its loop, which isl calls after its depth."""
    name = f"{mark_of(node)} c{node.get_schedule_depth()}"
    return node.delete().insert_mark(isl.Id(name, context=node.get_ctx()))


def is_unrolled(node: isl.ScheduleNode) -> bool:
    """Whether the node is a band of one member whose loop shall be written out, turn by turn."""
    if node.get_type() != isl.schedule_node_type.band or node.band_n_member() != 1:
        return False
    return node.band_member_get_ast_loop_type(0) == isl.ast_loop_type.unroll


def as_marked_loop(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """Such a band as one of a loop, below a mark that says with its variable that it shall be written out."""
    name = f"{_UNROLLED} c{node.get_schedule_depth()}"
    loop = node.band_member_set_ast_loop_type(0, isl.ast_loop_type.default)
    return loop.insert_mark(isl.Id(name, context=node.get_ctx()))


def unrolled_variable(name: str) -> str | None:
    """The variable of the loop, where :func:`as_marked_loop` wrote the name; None where it did not."""
    text, _, variable = name.rpartition(" ")
    return variable if text == _UNROLLED else None


def mark_and_variable(name: str) -> tuple[Mark, str]:
    """What :func:`with_variable` wrote."""
    text, _, variable = name.rpartition(" ")
    return Mark.from_text(text), variable
