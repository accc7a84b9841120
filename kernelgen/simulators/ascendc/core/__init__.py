"""One AI core: the scalar unit, its pipes, copies, the cube unit.

Reading order: copies, cube, scalars, decode, core_memories, launch_state, engine, core.
"""
