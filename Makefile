# `make help` lists what can be asked for.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

HOST ?= 127.0.0.1
PORT ?= 8080
DATA ?= ./data

VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -m

.PHONY: setup lock

setup: $(VENV)/.dev-installed ## Prepare .venv with everything needed to run, change and test

$(BIN)/python:
	@python3 -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Penstock needs Python 3.11 or newer")'
	python3 -m venv $(VENV)

$(VENV)/.dev-installed: requirements-dev.lock pyproject.toml | $(BIN)/python
	$(RUN) pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-dev.lock
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

LOCK := uv pip compile pyproject.toml --group build --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"

lock: ## Resolve the dependencies anew and write both locks
	env -u PIP_FIND_LINKS $(BIN)/$(LOCK) --upgrade --group dev -o requirements-dev.lock
	env -u PIP_FIND_LINKS $(BIN)/$(LOCK) --upgrade -c requirements-dev.lock -o requirements.lock
