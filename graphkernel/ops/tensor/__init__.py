"""What user functions compute with while they are traced.

Reading order: arguments, other_names, untraceable, weak_typing, tensor, apply, in_turn.
"""
