"""Whole ONNX networks: ours beside onnxruntime, OpenVINO and torch.compile.

Reading order: ``contestants`` (who runs a network, and how), ``start`` (one start in a fresh process: time and memory),
``race`` (all of them in turns, in processes that stay), ``limits`` (what the machine does at most), ``shares`` (the steps of
ours, each with its share of that), ``__main__`` (all networks of a folder, and the record).
"""
