"""Programs of several ranks: what each does, how real processes run them, and what they are held against.

Reading order: programs, logged, rank, processes, __main__.
"""
