"""Programs compiled and launched: on a CUDA device, through OpenCL, or in the interpreter, with a model of the time.

Reading order: arrays, device, nvrtc, cubins, bound, launcher, opencl_entry, statement_count, text_entry, time_model,
interpret, entry.
"""
