"""What changes while lanes run: registers, memories, who touched what, what was counted and found.

Reading order: counters, findings, frame, lanes, memory, race_detector, release_acquire, state.
"""
