"""Fuzzers that anyone can run: ``python -m tests.fuzz NAME --minutes 10``. See docs/fuzzing.md.

The machine: ``outcome`` (what a sample comes to), ``fuzzer`` (what a fuzzer is), ``pool`` (processes), ``record`` (what a
run leaves behind), ``kept`` (findings as files; ``cases`` holds them). The fuzzers: ``onnx_models``, ``text_ir``,
``composite_json``, ``onnx_bytes``, ``flags``, ``plans``; ``mutate`` is what those of texts share, ``models`` how ONNX
models are drawn and judged.
"""
