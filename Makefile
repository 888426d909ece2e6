# Every target installs what it needs on first use: a fresh machine needs only Python 3.11 or 3.12 and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: train test lint check clean

train: $(READY)
	$(BIN)/ludus train brawl --preset quick

test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

include benchmarks/results.mk

clean:
	rm -rf .venv build src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
