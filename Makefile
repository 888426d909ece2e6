# Every target installs what it needs on first use: a fresh machine needs only Python 3.11 or 3.12 and make.
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
WINDOW := .venv/.window
READY := .venv/.ready
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS := $(shell expr $(CORES) + 2)

# Tests start many processes: each would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: train play test test-rest test-all fast lint docs clean

train: $(CORE)
	$(BIN)/ludus train brawl --preset quick

# In a window, against an agent that comes with Ludus.
play: $(WINDOW)
	$(BIN)/ludus play brawl --against champion

# What every change should pass, in minutes. Lint beside the tests, because these often wait for processes.
test: $(READY)
	$(MAKE) --no-print-directory --jobs=2 lint fast

# Everything else, by what it needs: training, a browser, a screen, Ray, compilers, packages, faults. A few of these marks
# only: make test-rest MARKS="train or ray". Two processes more than there are cores: tests wait for other processes,
# screens and disks a fifth of the time.
test-rest: $(READY)
	$(PYTEST) -n $(WORKERS) -m "($(MARKS)) and not slow" --durations 60

test-all: test test-rest

HEAVY := train or browser or screen or ray or compile or package or fault
MARKS ?= $(HEAVY)

# Every process collects all tests, 40 CPU seconds each: no more of them than cores.
fast: $(READY)
	$(PYTEST) -n $(CORES) -m "not ($(HEAVY) or slow)"

PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --dist loadfile

# What mypy knows of libraries is kept for all clones of a user: it goes by the content of files, and not by their paths.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ludus-mypy

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/mkdocs build --strict

# What training needs, and in the same call of pip what tests need if they are asked for: every call builds Ludus again,
# eight seconds. Files are compiled when they are first imported: most of them never are, and compiling all of them takes
# more than half of the installation.
FOR_TESTS := $(filter test test-rest test-all fast lint docs $(READY),$(MAKECMDGOALS))
$(CORE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable $(if $(FOR_TESTS),".[dev]",.)
	touch $@
	$(if $(FOR_TESTS),touch $(READY))

# And what a window needs.
$(WINDOW): $(CORE)
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[window]"
	touch $@

# And what the tests need, windows included. After the core, so that `make -j train test` never runs two pips at once.
$(READY): $(CORE)
	test $@ -nt $(CORE) || $(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	touch $(WINDOW) $@

include benchmarks/results.mk

clean:
	rm -rf .venv build site src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
