"""The text of a table's step that runs a session of a library, in LLVM IR.

``session(arguments, sizes)``: the arguments are addresses of arrays, inputs before outputs. The sizes are the address of a
record of 64-bit fields (:mod:`kernelgen.native.session` writes it), that of two words for a failure, and a number for them:

    header   functions that create a tensor, run a session and release a tensor; memory, session, input names, inputs,
             output names, outputs, both together; functions that describe a tensor, tell element, rank and extents of a
             description, release it, and tell where a tensor lies
    value    tensor (0: none): of each input and output
    told     address of the array that the tensor was made of
    layout   bytes, extents, rank, element

A tensor whose array lies elsewhere than before is made anew; one whose address is always 0 the library allocates, and in
place of its extents are fields for what it is found to be: element, rank, address, extents.
Where the first word for a failure is set, nothing is done; else a status that is not null goes there, and the number behind it.
"""

from __future__ import annotations

from kernelgen.native.session import HEADER_FIELDS, MOST_EXTENTS, TENSOR_FIELDS
from kernelgen.native.wrapper import SESSION

_HEADER = (
    ("create", "ptr"),
    ("run", "ptr"),
    ("release", "ptr"),
    ("memory", "ptr"),
    ("session", "ptr"),
    ("input.names", "ptr"),
    ("inputs", "i64"),
    ("output.names", "ptr"),
    ("outputs", "i64"),
    ("count", "i64"),
    ("describing", "ptr"),
    ("element.of", "ptr"),
    ("rank.of", "ptr"),
    ("extents.of", "ptr"),
    ("release.info", "ptr"),
    ("data.of", "ptr"),
)
"""What the fields of the header are called here, in their order, and what they are."""

_LOADED = "\n".join(
    f"  %f{field} = getelementptr i64, ptr %record, i64 {field}\n  %{name} = load {kind}, ptr %f{field}"
    for field, (name, kind) in enumerate(_HEADER)
)

TEXT = f"""
define void @{SESSION}(ptr %arguments, ptr %sizes) {{
entry:
  %record = load ptr, ptr %sizes
  %s1 = getelementptr i64, ptr %sizes, i64 1
  %failure = load ptr, ptr %s1
  %s2 = getelementptr i64, ptr %sizes, i64 2
  %number = load i64, ptr %s2
{_LOADED}
  %description = alloca ptr
  %values = getelementptr i64, ptr %record, i64 {HEADER_FIELDS}
  %told = getelementptr i64, ptr %values, i64 %count
  %layouts = getelementptr i64, ptr %told, i64 %count
  %before = load i64, ptr %failure
  %is.well = icmp eq i64 %before, 0
  br i1 %is.well, label %test, label %done

test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %tensor, label %call

tensor:
  %argument = getelementptr i64, ptr %arguments, i64 %i
  %address = load i64, ptr %argument
  %told.field = getelementptr i64, ptr %told, i64 %i
  %known = load i64, ptr %told.field
  %value.field = getelementptr i64, ptr %values, i64 %i
  %lies.there = icmp eq i64 %address, %known
  br i1 %lies.there, label %next, label %moved

moved:
  %value = load ptr, ptr %value.field
  %is.none = icmp eq ptr %value, null
  br i1 %is.none, label %make, label %let.go

let.go:
  call void %release(ptr %value)
  store ptr null, ptr %value.field
  br label %make

make:
  store i64 -1, ptr %told.field
  %layout.offset = mul i64 %i, {TENSOR_FIELDS}
  %layout = getelementptr i64, ptr %layouts, i64 %layout.offset
  %bytes = load i64, ptr %layout
  %l1 = getelementptr i64, ptr %layout, i64 1
  %extents = load ptr, ptr %l1
  %l2 = getelementptr i64, ptr %layout, i64 2
  %rank = load i64, ptr %l2
  %l3 = getelementptr i64, ptr %layout, i64 3
  %element = load i32, ptr %l3
  %data = inttoptr i64 %address to ptr
  %made = call ptr %create(ptr %memory, ptr %data, i64 %bytes, ptr %extents, i64 %rank, i32 %element, ptr %value.field)
  %was.made = icmp eq ptr %made, null
  br i1 %was.made, label %tell, label %fail

tell:
  store i64 %address, ptr %told.field
  br label %next

next:
  %i.next = add i64 %i, 1
  br label %test

call:
  %results = getelementptr i64, ptr %values, i64 %inputs
  %ran = call ptr %run(ptr %session, ptr null, ptr %input.names, ptr %values, i64 %inputs, ptr %output.names, \
i64 %outputs, ptr %results)
  %went.well = icmp eq ptr %ran, null
  br i1 %went.well, label %look, label %fail

look:
  %k = phi i64 [ %inputs, %call ], [ %k.next, %found ]
  %k.more = icmp ult i64 %k, %count
  br i1 %k.more, label %result, label %done

result:
  %k.told.field = getelementptr i64, ptr %told, i64 %k
  %k.told = load i64, ptr %k.told.field
  %is.allocated = icmp eq i64 %k.told, 0
  br i1 %is.allocated, label %describe, label %found

describe:
  %k.value.field = getelementptr i64, ptr %values, i64 %k
  %k.value = load ptr, ptr %k.value.field
  %k.layout.offset = mul i64 %k, {TENSOR_FIELDS}
  %k.layout = getelementptr i64, ptr %layouts, i64 %k.layout.offset
  %k1 = getelementptr i64, ptr %k.layout, i64 1
  %seen = load ptr, ptr %k1
  %seen.rank = getelementptr i64, ptr %seen, i64 1
  %seen.data = getelementptr i64, ptr %seen, i64 2
  %seen.extents = getelementptr i64, ptr %seen, i64 3
  store i64 0, ptr %seen
  %described = call ptr %describing(ptr %k.value, ptr %description)
  %was.described = icmp eq ptr %described, null
  br i1 %was.described, label %read, label %fail

read:
  %info = load ptr, ptr %description
  %ignored.1 = call ptr %element.of(ptr %info, ptr %seen)
  %ignored.2 = call ptr %rank.of(ptr %info, ptr %seen.rank)
  %found.rank = load i64, ptr %seen.rank
  %is.short = icmp ult i64 %found.rank, {MOST_EXTENTS}
  %read.rank = select i1 %is.short, i64 %found.rank, i64 {MOST_EXTENTS}
  %ignored.3 = call ptr %extents.of(ptr %info, ptr %seen.extents, i64 %read.rank)
  call void %release.info(ptr %info)
  %located = call ptr %data.of(ptr %k.value, ptr %seen.data)
  %was.located = icmp eq ptr %located, null
  br i1 %was.located, label %found, label %fail

found:
  %k.next = add i64 %k, 1
  br label %look

fail:
  %status = phi ptr [ %made, %make ], [ %ran, %call ], [ %described, %describe ], [ %located, %read ]
  store ptr %status, ptr %failure
  %second = getelementptr i64, ptr %failure, i64 1
  store i64 %number, ptr %second
  br label %done

done:
  ret void
}}
"""
