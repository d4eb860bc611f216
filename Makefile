# Every target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup lock demo check format generate generate-openapi test test-unit test-world test-server soak bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

.uv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pyjobset needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'

$(STAMP): requirements.lock pyproject.toml | $(filter .uv/bin/uv,$(UV))
	$(UV) venv --quiet --allow-existing --python '>=3.11' $(VENV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

setup: $(STAMP) ## make the virtual environment

lock: | $(filter .uv/bin/uv,$(UV)) ## resolve the dependencies again into requirements.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --group dev --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --constraints requirements.lock --custom-compile-command 'make lock' --output-file requirements.image.lock pyproject.toml

demo: $(STAMP) ## start a local Kubernetes and run the gang example to its end
	@$(BIN)/jobset demo

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: $(STAMP) ## format, lint, types, import contracts, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/generate.py --check

generate: $(STAMP) ## rewrite the generated files
	$(BIN)/python scripts/generate.py

generate-openapi: $(STAMP) ## refresh Kubernetes' schemas for the CRD from the cluster of kubectl's current context
	PYTHONPATH=scripts $(BIN)/python -m crd.snapshot

test-unit: $(STAMP) ## tests that start no process
	$(BIN)/pytest -n 2 -m 'not server and not world'

test-server: $(STAMP) ## tests against the real control plane
	$(BIN)/python scripts/kubernetes.py
	$(BIN)/python scripts/helm_program.py
	$(BIN)/pytest -n 4 -m server tests/server tests/examples

test-world: $(STAMP) ## thousands of simulated worlds with faults
	$(BIN)/pytest -n 2 tests/world

soak: $(STAMP) ## simulated worlds until HOURS are over
	$(BIN)/python -m tests.world.soak --hours $(or $(HOURS),1)

test: test-unit test-world test-server ## all tests

bench: $(STAMP) ## measure
	$(BIN)/python -m bench.run

clean: ## forget the environments (the built Kubernetes binaries stay in the user's cache)
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
