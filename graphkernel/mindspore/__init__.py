"""What users bring along from MindSpore: its names, numbers and flags, with the reason for each that does nothing here.

Data and grammar, read by what acts on them. Reading order: passes (stages, and the passes without work here), rule_ids (what
the rewriting rules are called there), flags (those that change nothing here), flag_text (how flags are written).
"""
