"""Packages: everything that an executable needs to run on this machine, in one file, without a compiler.

A ``.gkx`` file is a zip archive whose entries are stored as they are, in a fixed order and without times: two builds of one
model are equal to the byte.

    weights.safetensors    the content of large constants, by digest; mapped, never copied
    manifest.json          versions, machine, digests of all entries; kernels and regions, see ``manifest``
    program.json           steps over slots: all that running needs, see ``programs``
    graph.gk               the optimized graph as text, read when somebody asks for it
    code.bin               machine code, one piece behind the other
    regions/N.onnx         what the host library runs; weights are named, not held

Reading order: container and container_writer (the archive), tensors (weights), kept_weights (those that lie in the cache),
manifest (machine and table of contents), programs (what runs), nodes and operators (that it names), reports (of what was
built, as texts), write, read (the door, which imports little), loaded (what it leads to), begun (sessions that open while
numpy loads), lent (weights, and the sessions over them) and assemble (kernels, sessions and program together), planned
(graph and plan of what was loaded, with its kernels and regions), unread (a graph that is read when somebody looks at it).
"""
