"""Marks in schedule trees: isl's mark nodes carry a name, which is written and read here alone.

thread 128        in a schedule
thread 128 c3     in what loops are read from: with the variable of the loop that is meant
"""

from __future__ import annotations

import islpy as isl

from kernelgen.nest.marks import Mark


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


def mark_and_variable(name: str) -> tuple[Mark, str]:
    """What :func:`with_variable` wrote."""
    text, _, variable = name.rpartition(" ")
    return Mark.from_text(text), variable
