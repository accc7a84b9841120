"""The Python functions of operators: made from the records, or written where they do more.

Reading order: derived, written.
"""
