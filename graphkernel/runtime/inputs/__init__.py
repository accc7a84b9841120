"""What comes in: arrays of any library, by place or by name; samples where none are given.

Reading order: index_ranges, named_inputs, samples, torch_tensors, arrays.
"""
