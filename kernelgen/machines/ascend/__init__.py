"""What an Ascend machine is: sizes, cores, limits, rates; the five machines, and a user's own.

Reading order: description, dtype_rules, machines, platform_config.
"""
