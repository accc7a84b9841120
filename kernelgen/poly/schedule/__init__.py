"""When each instance runs: schedules, edits of schedule trees, and loops made of them.

Reading order: compute_schedule, marks, tree, apply_plan, band_members, generate_loops.
"""
