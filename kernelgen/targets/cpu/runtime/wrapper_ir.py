"""The text of the module that every process loads once: a Python function in LLVM IR.

``call(self, args, nargs)`` is a METH_FASTCALL function. ``self`` is a bytes object whose data is a table of 64-bit fields
(:mod:`kernelgen.native.wrapper` writes it):

    header   code, arrays, symbols, releases the lock, type ndarray, None, ArgumentError, table (0: none), messages (offsets)
             for the count and for arrays that overlap
    array    kind of dtype, flags, dims, first dim (number of its record), message (offset), bytes of an element
    dim      symbol (-1: none), factor, constant: the extent is ``factor * symbol + constant``

It checks every array (type, dtype, flags, rank, extents, that none overlaps one that is written), binds the symbols from the
extents, and calls the code: a kernel with the arrays' addresses and the sizes, or with a table in place of these.
Field offsets of numpy's array struct are tested before this is used.

``run(arrays, table)`` is the code of a table of steps (:mod:`kernelgen.native.table` writes it), again of 64-bit fields:

    header   cells, steps
    cell     array, address: where the array's address is written before the steps
    step     code, arguments, sizes: what is called with what

``copy(arguments, sizes)`` is a step that writes so many bytes of its second argument into its first. ``places`` is one that
copies indices, sizes being their bytes, the bytes of one, the extent of the axis that they point into, and a number for whom
reads there: to negative ones it adds the extent. The number and the first index that is out of range go to the third argument,
which holds 0 before. A step that runs a session of a library is of :mod:`~kernelgen.targets.cpu.runtime.session_ir`.
"""

from __future__ import annotations

from functools import cache

from kernelgen.native.library import Library
from kernelgen.native.table import CELL_FIELDS, STEP_FIELDS, TABLE_FIELDS
from kernelgen.native.wrapper import (
    ARRAY_FIELDS,
    CALL,
    COPY,
    DATA,
    DIM_FIELDS,
    DIMS,
    DTYPE,
    FLAGS,
    HEADER_FIELDS,
    KIND,
    PLACES,
    RANK,
    RUN,
    SESSION,
    WRITEABLE,
    caller_of,
    python_functions,
)
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.runtime.objects import cached_library
from kernelgen.targets.cpu.runtime.session_ir import TEXT as SESSION_TEXT

TEXT = f"""
declare void @Py_IncRef(ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define ptr @{CALL}(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %table = getelementptr i8, ptr %self, i64 {bytes.__basicsize__ - 1}
  %kernel = load ptr, ptr %table
  %p1 = getelementptr i64, ptr %table, i64 1
  %arrays = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %table, i64 2
  %symbols = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %table, i64 3
  %releases = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %table, i64 4
  %ndarray = load i64, ptr %p4
  %p5 = getelementptr i64, ptr %table, i64 5
  %none = load ptr, ptr %p5
  %p6 = getelementptr i64, ptr %table, i64 6
  %error = load ptr, ptr %p6
  %p7 = getelementptr i64, ptr %table, i64 7
  %steps = load ptr, ptr %p7
  %p8 = getelementptr i64, ptr %table, i64 8
  %count.message = load i64, ptr %p8
  %p9 = getelementptr i64, ptr %table, i64 9
  %overlap.message = load i64, ptr %p9
  %pointers = alloca ptr, i64 %arrays
  %ends = alloca ptr, i64 %arrays
  %sizes = alloca i64, i64 %symbols
  %records = getelementptr i64, ptr %table, i64 {HEADER_FIELDS}
  %dims.offset = mul i64 %arrays, {ARRAY_FIELDS}
  %dims.table = getelementptr i64, ptr %records, i64 %dims.offset
  %sizes.bytes = mul i64 %symbols, 8
  call void @llvm.memset.p0.i64(ptr %sizes, i8 0, i64 %sizes.bytes, i1 false)
  %count.fits = icmp eq i64 %nargs, %arrays
  br i1 %count.fits, label %arrays.test, label %fail

arrays.test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %array.fits ]
  %i.more = icmp ult i64 %i, %arrays
  br i1 %i.more, label %array, label %apart

array:
  %record.offset = mul i64 %i, {ARRAY_FIELDS}
  %record = getelementptr i64, ptr %records, i64 %record.offset
  %argument = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %argument
  %r4 = getelementptr i64, ptr %record, i64 4
  %message = load i64, ptr %r4
  %type.field = getelementptr i8, ptr %object, i64 8
  %type = load i64, ptr %type.field
  %type.fits = icmp eq i64 %type, %ndarray
  br i1 %type.fits, label %array.dtype, label %fail

array.dtype:
  %dtype.field = getelementptr i8, ptr %object, i64 {DTYPE}
  %dtype = load ptr, ptr %dtype.field
  %kind.field = getelementptr i8, ptr %dtype, i64 {KIND}
  %kind = load i64, ptr %kind.field
  %kind.wanted = load i64, ptr %record
  %dtype.fits = icmp eq i64 %kind, %kind.wanted
  %flags.field = getelementptr i8, ptr %object, i64 {FLAGS}
  %flags = load i32, ptr %flags.field
  %r1 = getelementptr i64, ptr %record, i64 1
  %flags.wanted = load i32, ptr %r1
  %flags.set = and i32 %flags, %flags.wanted
  %flags.fit = icmp eq i32 %flags.set, %flags.wanted
  %rank.field = getelementptr i8, ptr %object, i64 {RANK}
  %rank32 = load i32, ptr %rank.field
  %rank = sext i32 %rank32 to i64
  %r2 = getelementptr i64, ptr %record, i64 2
  %rank.wanted = load i64, ptr %r2
  %rank.fits = icmp eq i64 %rank, %rank.wanted
  %fits.1 = and i1 %dtype.fits, %flags.fit
  %fits.2 = and i1 %fits.1, %rank.fits
  %r3 = getelementptr i64, ptr %record, i64 3
  %dims.first = load i64, ptr %r3
  %r5 = getelementptr i64, ptr %record, i64 5
  %itemsize = load i64, ptr %r5
  %extents.field = getelementptr i8, ptr %object, i64 {DIMS}
  %extents = load ptr, ptr %extents.field
  br i1 %fits.2, label %dims.test, label %fail

dims.test:
  %d = phi i64 [ 0, %array.dtype ], [ %d.next, %dim.fits ]
  %bytes = phi i64 [ %itemsize, %array.dtype ], [ %bytes.next, %dim.fits ]
  %d.more = icmp ult i64 %d, %rank
  br i1 %d.more, label %dim, label %array.fits

dim:
  %extent.field = getelementptr i64, ptr %extents, i64 %d
  %extent = load i64, ptr %extent.field
  %dim.number = add i64 %dims.first, %d
  %dim.offset = mul i64 %dim.number, {DIM_FIELDS}
  %d0 = getelementptr i64, ptr %dims.table, i64 %dim.offset
  %symbol = load i64, ptr %d0
  %d1 = getelementptr i64, ptr %d0, i64 1
  %factor = load i64, ptr %d1
  %d2 = getelementptr i64, ptr %d0, i64 2
  %constant = load i64, ptr %d2
  %scaled = sub i64 %extent, %constant
  %is.symbolic = icmp sge i64 %symbol, 0
  br i1 %is.symbolic, label %dim.symbolic, label %dim.static

dim.static:
  %is.equal = icmp eq i64 %scaled, 0
  br i1 %is.equal, label %dim.fits, label %fail

dim.symbolic:
  %value = sdiv i64 %scaled, %factor
  %product = mul i64 %value, %factor
  %divides = icmp eq i64 %product, %scaled
  %positive = icmp sgt i64 %value, 0
  %size.field = getelementptr i64, ptr %sizes, i64 %symbol
  %bound = load i64, ptr %size.field
  %is.new = icmp eq i64 %bound, 0
  %agrees = icmp eq i64 %bound, %value
  %consistent = or i1 %is.new, %agrees
  %sound.1 = and i1 %divides, %positive
  %sound = and i1 %sound.1, %consistent
  store i64 %value, ptr %size.field
  br i1 %sound, label %dim.fits, label %fail

dim.fits:
  %d.next = add i64 %d, 1
  %bytes.next = mul i64 %bytes, %extent
  br label %dims.test

array.fits:
  %data.field = getelementptr i8, ptr %object, i64 {DATA}
  %data = load ptr, ptr %data.field
  %pointer = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer
  %data.end = getelementptr i8, ptr %data, i64 %bytes
  %end = getelementptr ptr, ptr %ends, i64 %i
  store ptr %data.end, ptr %end
  %i.next = add i64 %i, 1
  br label %arrays.test

apart:
  %w = phi i64 [ 0, %arrays.test ], [ %w.next, %apart.next ]
  %w.more = icmp ult i64 %w, %arrays
  br i1 %w.more, label %apart.test, label %run

apart.test:
  %w.offset = mul i64 %w, {ARRAY_FIELDS}
  %w.record = getelementptr i64, ptr %records, i64 %w.offset
  %w1 = getelementptr i64, ptr %w.record, i64 1
  %w.flags = load i64, ptr %w1
  %w.written = and i64 %w.flags, {WRITEABLE}
  %is.written = icmp ne i64 %w.written, 0
  %w.pointer = getelementptr ptr, ptr %pointers, i64 %w
  %w.begin = load ptr, ptr %w.pointer
  %w.end.pointer = getelementptr ptr, ptr %ends, i64 %w
  %w.end = load ptr, ptr %w.end.pointer
  br i1 %is.written, label %others, label %apart.next

others:
  %k = phi i64 [ 0, %apart.test ], [ %k.next, %others ]
  %before = phi i1 [ false, %apart.test ], [ %meets, %others ]
  %k.pointer = getelementptr ptr, ptr %pointers, i64 %k
  %k.begin = load ptr, ptr %k.pointer
  %k.end.pointer = getelementptr ptr, ptr %ends, i64 %k
  %k.end = load ptr, ptr %k.end.pointer
  %is.other = icmp ne i64 %k, %w
  %k.starts = icmp ult ptr %k.begin, %w.end
  %w.starts = icmp ult ptr %w.begin, %k.end
  %both = and i1 %k.starts, %w.starts
  %both.others = and i1 %both, %is.other
  %meets = or i1 %before, %both.others
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %arrays
  br i1 %k.more, label %others, label %others.done

others.done:
  br i1 %meets, label %fail, label %apart.next

apart.next:
  %w.next = add i64 %w, 1
  br label %apart

run:
  %has.steps = icmp ne ptr %steps, null
  %second = select i1 %has.steps, ptr %steps, ptr %sizes
  %lets.go = icmp ne i64 %releases, 0
  br i1 %lets.go, label %run.released, label %run.held

run.held:
  call void %kernel(ptr %pointers, ptr %second)
  br label %done

run.released:
  %thread = call ptr @PyEval_SaveThread()
  call void %kernel(ptr %pointers, ptr %second)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done

done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none

fail:
  %offset = phi i64 [ %count.message, %entry ], [ %message, %array ], [ %message, %array.dtype ], \
[ %message, %dim.static ], [ %message, %dim.symbolic ], [ %overlap.message, %others.done ]
  %format = getelementptr i8, ptr %table, i64 %offset
  %ignored = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr %format)
  ret ptr null
}}

define void @{RUN}(ptr %arrays, ptr %table) {{
entry:
  %cells = load i64, ptr %table
  %p1 = getelementptr i64, ptr %table, i64 1
  %steps = load i64, ptr %p1
  %first.cell = getelementptr i64, ptr %table, i64 {TABLE_FIELDS}
  %cell.fields = mul i64 %cells, {CELL_FIELDS}
  %first.step = getelementptr i64, ptr %first.cell, i64 %cell.fields
  %step.fields = mul i64 %steps, {STEP_FIELDS}
  %end = getelementptr i64, ptr %first.step, i64 %step.fields
  br label %cells.test

cells.test:
  %cell = phi ptr [ %first.cell, %entry ], [ %cell.next, %fill ]
  %cell.more = icmp ult ptr %cell, %first.step
  br i1 %cell.more, label %fill, label %steps.test

fill:
  %array = load i64, ptr %cell
  %c1 = getelementptr i64, ptr %cell, i64 1
  %target = load ptr, ptr %c1
  %source = getelementptr ptr, ptr %arrays, i64 %array
  %address = load ptr, ptr %source
  store ptr %address, ptr %target
  %cell.next = getelementptr i64, ptr %cell, i64 {CELL_FIELDS}
  br label %cells.test

steps.test:
  %step = phi ptr [ %first.step, %cells.test ], [ %step.next, %step.run ]
  %step.more = icmp ult ptr %step, %end
  br i1 %step.more, label %step.run, label %done

step.run:
  %code = load ptr, ptr %step
  %s1 = getelementptr i64, ptr %step, i64 1
  %arguments = load ptr, ptr %s1
  %s2 = getelementptr i64, ptr %step, i64 2
  %sizes = load ptr, ptr %s2
  call void %code(ptr %arguments, ptr %sizes)
  %step.next = getelementptr i64, ptr %step, i64 {STEP_FIELDS}
  br label %steps.test

done:
  ret void
}}

define void @{COPY}(ptr %arguments, ptr %sizes) {{
  %target = load ptr, ptr %arguments
  %a1 = getelementptr ptr, ptr %arguments, i64 1
  %source = load ptr, ptr %a1
  %bytes = load i64, ptr %sizes
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret void
}}

define void @{PLACES}(ptr %arguments, ptr %sizes) {{
entry:
  %target = load ptr, ptr %arguments
  %a1 = getelementptr ptr, ptr %arguments, i64 1
  %source = load ptr, ptr %a1
  %a2 = getelementptr ptr, ptr %arguments, i64 2
  %failure = load ptr, ptr %a2
  %bytes = load i64, ptr %sizes
  %s1 = getelementptr i64, ptr %sizes, i64 1
  %itemsize = load i64, ptr %s1
  %s2 = getelementptr i64, ptr %sizes, i64 2
  %extent = load i64, ptr %s2
  %s3 = getelementptr i64, ptr %sizes, i64 3
  %number = load i64, ptr %s3
  %is.wide = icmp eq i64 %itemsize, 8
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %bytes
  br i1 %more, label %one, label %done
one:
  %from = getelementptr i8, ptr %source, i64 %i
  %to = getelementptr i8, ptr %target, i64 %i
  br i1 %is.wide, label %load.wide, label %load.narrow
load.wide:
  %wide = load i64, ptr %from
  br label %loaded
load.narrow:
  %narrow = load i32, ptr %from
  %widened = sext i32 %narrow to i64
  br label %loaded
loaded:
  %index = phi i64 [ %wide, %load.wide ], [ %widened, %load.narrow ]
  %counted = add i64 %index, %extent
  %is.negative = icmp slt i64 %index, 0
  %place = select i1 %is.negative, i64 %counted, i64 %index
  br i1 %is.wide, label %store.wide, label %store.narrow
store.wide:
  store i64 %place, ptr %to
  br label %stored
store.narrow:
  %cut = trunc i64 %place to i32
  store i32 %cut, ptr %to
  br label %stored
stored:
  %is.place = icmp ult i64 %place, %extent
  br i1 %is.place, label %next, label %wrong
wrong:
  %before = load i64, ptr %failure
  %is.first = icmp eq i64 %before, 0
  br i1 %is.first, label %tell, label %next
tell:
  store i64 %number, ptr %failure
  %f1 = getelementptr i64, ptr %failure, i64 1
  store i64 %index, ptr %f1
  br label %next
next:
  %i.next = add i64 %i, %itemsize
  br label %test
done:
  ret void
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


@cache
def caller() -> Library:
    """The function that all kernels of this process are called through."""
    library = cached_library(
        TEXT + SESSION_TEXT, detect_host(), (CALL, RUN, COPY, PLACES, SESSION), python_functions()
    )[0]
    return caller_of(library.code) if library.code else library
