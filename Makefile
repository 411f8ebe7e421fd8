# Everything a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
TRACES ?= examples/traces
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo analyze stack test soak soak-streams soak-stack check grafana screenshots docs format clean help

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/'

demo: $(VENV)/.demo  ## run the demo application and find its planted failures
	$(BIN)/ldfi demo $(ARGS)

analyze: $(VENV)/.demo ## say what traces tell: the sample's, or TRACES=FILES
	$(BIN)/ldfi analyze $(TRACES)

stack: $(VENV)/.stack ## the same on Kafka, PostgreSQL and a Collector (docs/deployment.md)
	$(BIN)/python -m deploy.stack $(ARGS)

test: $(VENV)/.dev   ## run the tests
	$(BIN)/pytest

soak: $(VENV)/.dev   ## kill the service hundreds of times while it works (an hour or so)
	$(BIN)/python -m tests.experiments.crash.soak $(ARGS)

soak-streams: $(VENV)/.dev  ## kill ingest workers and the broker, 30 times each (an hour or so)
	LDFI_SOAK=30 $(BIN)/pytest -x -s tests/experiments/streams/test_kills.py

soak-stack: $(VENV)/.dev  ## kill each part of the whole stack 30 times (half an hour or so)
	$(BIN)/python -m tests.experiments.streams.soak $(ARGS)

check: $(VENV)/.dev $(VENV)/.audit ## lint, types, the arrows between rooms, known vulnerabilities
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/audit.py

grafana: $(VENV)/.dev ## write the JSON of the Grafana dashboards anew
	$(BIN)/python -m ldfi.dashboards.grafana deploy/grafana/dashboards

screenshots: $(VENV)/.dev ## take the pictures of docs/dashboards.md anew (needs Chromium)
	$(BIN)/python -m tests.dashboards.browser.screenshots docs/screenshots

audit: $(VENV)/.audit ## hold what is installed against known vulnerabilities (needs the network)
	$(BIN)/python .ci/audit.py

docs: $(VENV)/.docs ## build the documentation as a site, strictly, into build/site
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/house.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.dev ## bring the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:           ## remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ldfi needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(VENV)/.stack: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,kafka]'
	@touch $@

$(VENV)/.audit: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[audit]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo $(VENV)/.stack $(VENV)/.docs
