"""How long pipes are busy: published rates, fitted constants.

Reading order: instruction_cost, pipe_clock.
"""
