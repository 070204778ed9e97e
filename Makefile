# Two commands do everything on a fresh machine (Python >= 3.11, make, git):
#   make demo    audit two synthetic versions of a real table; one is released, one is refused
#   make test    run the tests
# The demo needs no torch, which the tests do. It comes with CUDA on Linux (gigabytes); without a GPU take the
# CPU build, once:
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make install
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SMALL := $(VENV)/.small
OLD := .venv-lowest
# Tests run beside one another, a process for each core; `make test SPREAD=` runs them one by one.
SPREAD ?= -n logical --maxprocesses 8 --dist loadgroup
# What reads tables. A whole audit is compared number by number besides.
OLD_TESTS := tests/encode tests/sources tests/test_frames.py --ignore tests/encode/test_embedding.py  # which takes torch

.DEFAULT_GOAL := help
.PHONY: help install demo ui test test-all test-lowest check format lint types layers docs clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@echo "==> making $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 2; }
	@$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt .ci/install.py | $(BIN)/python
	@echo "==> installing pinned packages (a minute the first time, with pip alone several)"
	@$(BIN)/python .ci/install.py
	@touch $@ $(SMALL)

# What the demo takes: neither torch nor the tools of tests. A whole environment has it too.
$(SMALL): pyproject.toml constraints.txt .ci/install.py | $(BIN)/python
	@echo "==> installing the packages that the demo takes"
	@$(BIN)/python .ci/install.py dagster
	@touch $@

install: $(READY)  ## make the whole virtual environment

demo: $(SMALL)  ## audit two synthetic versions of a real table
	@echo "==> running the demo in ./demo"
	@$(BIN)/synth-audit demo demo

ui: $(SMALL)  ## open the demo's tables in Dagster (run `make demo` first)
	@echo "==> Dagster on http://localhost:3000 (Ctrl-C ends it)"
	@$(BIN)/python -m synth_audit.dagster.demo --ui demo

test: $(READY)  ## run the tests
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -m "not slow" $(SPREAD)

test-all: $(READY)  ## run the tests, the slow ones too
	@$(BIN)/python -m pytest $(SPREAD)

$(OLD)/.ready: pyproject.toml .ci/lowest.txt .ci/install.py
	@echo "==> installing the lowest versions (half a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 13))' \
		|| { echo "The lowest versions take Python 3.11 or 3.12; set PYTHON=/path/to/python3.12"; exit 2; }
	@$(PYTHON) -m venv --clear $(OLD)
	@$(OLD)/bin/python .ci/install.py --lowest test
	@touch $@

test-lowest: $(READY) $(OLD)/.ready  ## test what reads tables, with the lowest versions of all packages
	@echo "==> testing the lowest versions"
	@$(OLD)/bin/python -m pytest -m "not slow" $(SPREAD) $(OLD_TESTS)
	@echo "==> comparing one audit's numbers with the lowest versions and with the pinned ones"
	@$(BIN)/python .ci/same_numbers.py $(OLD)/bin/python

# Types are checked by one process while the tests, which look at the layers too, begin: no core waits.
check: format lint  ## what CI runs: format, lint, layers, types, tests
	@$(MAKE) --no-print-directory -j 2 types test

format: $(READY)
	@echo "==> format" && $(BIN)/ruff format --check .

lint: $(READY)
	@echo "==> lint" && $(BIN)/ruff check .

types: $(READY)
	@echo "==> types" && $(BIN)/mypy

layers: $(READY)
	@echo "==> import layers" && $(BIN)/python tests/layers.py

docs: $(READY)  ## build the documentation into ./site
	@$(BIN)/mkdocs build --strict -q && echo "==> site/index.html"

clean:  ## remove everything that was made here
	rm -rf $(VENV) $(OLD) demo site build dist .mypy_cache .ruff_cache .pytest_cache
