"""What every simulator has, whatever machine it stands in for.

Reading order: findings, verdict.
"""
