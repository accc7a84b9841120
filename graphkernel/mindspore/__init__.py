"""What MindSpore has and this project does without: names, numbers and flags that users bring along, with reasons.

Data only, read by what acts on it. Reading order: passes (stages, and the passes without work here), rule_ids (what the
rewriting rules are called there), flags (those that change nothing here).
"""
