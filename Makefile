# Everything a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
TRACES ?= examples/traces
VENV ?= .venv
BIN := $(VENV)/bin

# In CI exactly what the lock names, hash by hash; elsewhere the newest that pyproject.toml allows.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ifdef CI
INSTALLED := pyproject.toml requirements/ci.lock
INSTALL = $(PIP) --require-hashes -r requirements/ci.lock \
	&& $(PIP) --no-deps --no-build-isolation -e .
else
INSTALLED := pyproject.toml
INSTALL = $(PIP) -e '.[$(EXTRAS)]'
endif

PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
# Hundreds of processes begin in tests: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE

# `make check UNAUDITED=allow` passes where no advisories can be reached, and says so.
AUDIT = $(BIN)/python .ci/audit.py $(if $(filter allow,$(UNAUDITED)),--allow-unreachable)
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --quiet

.PHONY: demo analyze stack containers test test-servers test-languages test-long test-all soak soak-properties soak-streams soak-stack soak-siege check go node java java-bench native polyglot petstore screenshots \
	audit docs format lock dist clean help

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/'

demo: $(VENV)/.demo  ## find the planted failures of a small shop (ARGS=--full: of a streaming service)
	$(BIN)/ldfi demo $(ARGS)

analyze: $(VENV)/.demo ## say what traces tell: the sample's, or TRACES=FILES
	$(BIN)/ldfi analyze $(TRACES)

stack: $(VENV)/.stack ## the same on Kafka, PostgreSQL and a Collector (docs/deployment.md)
	$(BIN)/python -m deploy.stack $(ARGS)

containers: $(VENV)/.dev ## build the image, run compose.yaml and a campaign in it (as root; deploy/containers)
	$(BIN)/python -m deploy.containers $(ARGS)

test: $(VENV)/.dev   ## run the tests that need nothing but Python (before each commit)
	$(PYTEST) --tier test $(ARGS)

test-servers: $(VENV)/.dev ## those with PostgreSQL, Kafka, Redis, Envoy, Prometheus, Chromium
	$(PYTEST) --tier servers $(ARGS)

test-languages: $(VENV)/.dev go node java native ## those of Go, Node, Java and Rust, and Python's with them
	$(PYTEST) --tier languages $(ARGS)

test-long: $(VENV)/.dev ## kills, whole stories, hundreds of simulated runs, fresh random examples (an hour or two)
	$(PYTEST) --tier long $(ARGS)
	$(PYTEST) --tier test --hypothesis-profile search -m hypothesis $(ARGS)

test-all: test test-servers test-languages test-long ## all of them: once on each finished piece of work

soak: $(VENV)/.dev   ## kill the service hundreds of times while it works (an hour or so)
	$(BIN)/python -m soak.crash $(ARGS)

soak-properties: $(VENV)/.dev ## learn 20,000 drawn histories again, and know the same (an hour or so)
	LDFI_HISTORIES=20000 $(BIN)/pytest -x --timeout=0 --hypothesis-profile=search $(ARGS) \
		tests/experiments/domain/campaign/test_exploration.py -k lessons_learned_again

soak-streams: $(VENV)/.dev  ## kill ingest workers and the broker, 30 times each (an hour or so)
	$(BIN)/python -m soak.streams $(ARGS)

soak-stack: $(VENV)/.dev  ## kill each part of the whole stack 30 times (half an hour or so)
	$(BIN)/python -m soak.stack $(ARGS)

soak-siege: $(VENV)/.dev ## attack the service in every way while somebody halts it (as root; half an hour or so)
	$(BIN)/python -m soak.siege $(ARGS)

check: $(VENV)/.dev $(VENV)/.audit ## lint, types, the arrows between rooms, known vulnerabilities
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(AUDIT)

go:              ## vet, check and test the Go module (needs Go; fuzzes for FUZZ=30s)
	.ci/go

node:            ## test the Node package with the libraries that it injects into (needs Node)
	.ci/node

java: | $(BIN)/python ## build and test the extension of OpenTelemetry's Java agent (needs a JDK and Maven)
	PYTHON=$(BIN)/python .ci/java

java-bench:      ## measure what the gate of the extension for Java costs a call (ARGS=-Donly=unarmed: a part)
	mvn --batch-mode --quiet --file fit/java/pom.xml -Pbench process-test-classes $(ARGS)

polyglot: $(VENV)/.dev ## a campaign on Python, Go and Node, Envoy and a proxy between them (needs Go and Node)
	$(BIN)/python examples/polyglot/campaign.py $(ARGS)

petstore: $(VENV)/.dev ## a campaign on four Spring Boot services, and then they are killed (needs a JDK, Maven, PostgreSQL)
	$(BIN)/python examples/petstore/campaign.py $(ARGS)

native: $(VENV)/.dev ## check, build and install the decoder in Rust (needs cargo; fuzzes for FUZZ=2 seconds)
	PYTHON=$(BIN)/python .ci/native

screenshots: $(VENV)/.dev ## take the pictures of docs/dashboards.md anew (needs Chromium)
	$(BIN)/python -m tests.dashboards.browser.screenshots docs/screenshots

audit: $(VENV)/.audit ## hold what is installed against known vulnerabilities (needs the network)
	$(AUDIT)

lock: $(VENV)/.release ## write the lock files of CI and the image anew (ARGS=--upgrade: the newest)
	$(LOCK) $(ARGS) --extra dev --extra audit --output-file requirements/ci.lock
	$(LOCK) $(ARGS) --extra demo --extra postgresql --extra grpc --extra kafka \
		--extra signing --output-file requirements/image.lock
	$(LOCK) $(ARGS) --extra build --output-file requirements/build.lock

dist: $(VENV)/.audit $(VENV)/.release ## build the wheel and the sdist into dist/, and try both (CONTRIBUTING.md)
	$(AUDIT)
	PYTHON=$(BIN)/python .ci/dist

docs: $(VENV)/.dev ## build the documentation as a site, strictly, into build/site
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

$(VENV)/.demo: EXTRAS = demo
$(VENV)/.demo: $(INSTALLED) | $(BIN)/python
	$(INSTALL)
	@touch $@

$(VENV)/.stack: EXTRAS = demo,postgresql,kafka
$(VENV)/.stack: $(INSTALLED) | $(BIN)/python
	$(INSTALL)
	@touch $@

$(VENV)/.audit: EXTRAS = audit
$(VENV)/.audit: $(INSTALLED) | $(VENV)/.dev
	$(INSTALL)
	@touch $@

$(VENV)/.dev: EXTRAS = dev
$(VENV)/.dev: $(INSTALLED) | $(BIN)/python
	$(INSTALL)
	@touch $@ $(VENV)/.demo $(VENV)/.stack

$(VENV)/.release: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[release]'
	@touch $@
