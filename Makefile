# Two commands: `make demo` shows Surefoot on a real training, `make test` checks everything.
# Each makes its own environment (.venv) first; nothing else is needed but Python 3.11, git and make.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-slow check bench up clean

help:
	@echo "make demo       Surefoot on a real training that is broken twice; console at http://127.0.0.1:8501"
	@echo "make up         Surefoot on this machine"
	@echo "make test       checks and tests"
	@echo "make test-slow  the long ones: drills five times over, installs, torchrun's own restarts"
	@echo "make bench      measurements against peers (NAME=hook for one); writes docs/benchmark.md"

demo: $(STAMP)
	@$(BIN)/surefoot --log-level warning demo

up: $(STAMP)
	@$(BIN)/surefoot up

test: check
	@sh deploy/test-system.sh
	$(BIN)/python -m pytest -q

test-slow: $(STAMP)
	@sh deploy/test-system.sh
	$(BIN)/python -m pytest -q -m slow

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(NAME)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or newer, or name it: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11: make PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making the environment in .venv"; $(PYTHON) -m venv .venv; } || { echo "make: cannot make .venv: is the venv module installed (python3-venv)?" >&2; exit 1; }
	@echo "installing Surefoot and what it needs (some minutes the first time)"
	@$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv artifacts
