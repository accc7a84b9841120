"""What a plan is made of, and which library runs what no kernel computes.

Reading order: steps, rows, reduced_product, collective, host, program.
"""
