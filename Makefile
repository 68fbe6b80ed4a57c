# `make help` lists the targets. Everything is installed into .venv and the user's cache folder.
# Python may write bytecode: packages are compiled at installation and our modules at their first import. Otherwise each
# process would compile them again, which takes 5 s.
unexport PYTHONDONTWRITEBYTECODE
# Prefer the distribution's Python: it is built with profile-guided optimization; pyenv's default build is a third slower.
PYTHON ?= $(firstword $(shell for each in /usr/bin/python3.11 python3.11; do \
	$$each -c 'import ensurepip, venv' 2>/dev/null && echo $$each; done) python3.11)
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 20

# Re-created each time: over an environment of another Python, venv would leave a mix of both, which does not start.
$(VENV)/.runtime: requirements.lock requirements-uv.lock pyproject.toml
	@command -v mvn >/dev/null || test -d "$${CDC_LAKE_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/cdc-lake}/jars" || \
		{ echo "cdc-lake needs Maven (mvn) and a JDK to fetch its jars: install them (Debian: apt install maven)"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "cdc-lake needs $(PYTHON); give another path with 'make PYTHON=/path/to/python3.11 …'"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.lock
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.lock
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes --compile-bytecode -r requirements-dev.lock
	@touch $@

$(VENV)/.infra: $(VENV)/.dev requirements-infra.lock
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes --compile-bytecode -r requirements-infra.lock
	@touch $@

.PHONY: setup
setup: $(VENV)/.runtime ## virtual environment, jars and plugins
	$(BIN)/cdc-lake setup

.PHONY: demo
demo: $(VENV)/.runtime ## the whole pipeline on this machine, from nothing to a dashboard
	$(BIN)/cdc-lake demo $(ARGS)

# Tests are distributed by stacks and whole files, the longest first (cdc_lake_tests/pytest_hooks/collection_order.py).
PROCESSES ?= 2
SPREAD    = --dist loadfile --no-loadscope-reorder --numprocesses $(PROCESSES)

ifdef FULL
export CDC_LAKE_FULL = $(FULL)
endif

# Lint and unit tests do not use the network, so they run while setup downloads.
.PHONY: test
test: $(VENV)/.dev ## lint and unit tests, then those that start stacks; FAULTS=1 adds test-faults
	$(MAKE) --no-print-directory --jobs=3 lint unit setup
	$(MAKE) --no-print-directory stacks

.PHONY: lint
lint: $(VENV)/.dev secrets ## ruff, mypy and a scan for secrets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Findings that are not secrets are listed in .secrets.baseline. The scan sends nothing over the network.
.PHONY: secrets
secrets: $(VENV)/.dev ## secrets in the files that git tracks
	git ls-files -z | xargs -0 $(BIN)/detect-secrets-hook --no-verify --baseline .secrets.baseline

.PHONY: secrets-baseline
secrets-baseline: $(VENV)/.dev ## write .secrets.baseline again: review each new finding before you commit it
	$(BIN)/detect-secrets scan --no-verify --slim --exclude-files '\.(lock|ambr|baseline)$$' > .secrets.baseline
	git add .secrets.baseline

# More processes than cores: the tests wait for half of their time.
.PHONY: unit
unit: PROCESSES = 4
unit: $(VENV)/.dev ## tests without a stack (two minutes)
	$(BIN)/pytest $(SPREAD) cdc_lake_tests/unit

# One pytest run, also with the faults, so that no suite waits for the end of another.
.PHONY: stacks
stacks: $(VENV)/.dev setup ## integration and e2e; FAULTS=1 adds test-faults
	$(BIN)/pytest $(SPREAD) cdc_lake_tests/integration cdc_lake_tests/e2e $(if $(FAULTS),cdc_lake_tests/faults)

.PHONY: integration
integration: $(VENV)/.dev setup ## tests of one engine or resource at a time
	$(BIN)/pytest $(SPREAD) cdc_lake_tests/integration

.PHONY: e2e
e2e: $(VENV)/.dev setup ## the whole stack
	$(BIN)/pytest $(SPREAD) cdc_lake_tests/e2e

# All sizes are synthesized, since a failure can be specific to one.
TEMPLATES := build/cdk
.PHONY: infra
infra: needs-node $(VENV)/.infra ## the AWS stacks: synthesized without an account, linted, tested
	$(BIN)/mypy -p infra.aws
	rm -rf $(TEMPLATES)
	for size in dev small production; do $(BIN)/python -m infra.aws.app --size $$size --out $(TEMPLATES)/$$size || exit 1; done
	$(BIN)/cfn-lint --config-file infra/aws/.cfnlintrc.yaml
	$(BIN)/pytest cdc_lake_tests/infra_aws

.PHONY: needs-node
needs-node:
	@command -v node >/dev/null || { echo "Cannot run make infra: it needs Node.js for the CDK's libraries, and there is no 'node' on PATH. Install Node.js 22 or newer (20 still works), then run it again."; exit 1; }

.PHONY: audit
audit: $(VENV)/.dev secrets ## known vulnerabilities of the locked packages, and a scan for secrets
	$(BIN)/pip-audit --strict --disable-pip --require-hashes \
		-r requirements.lock -r requirements-dev.lock -r requirements-infra.lock $(ARGS)

.PHONY: aws-smoke
aws-smoke: setup ## Northwind once through your AWS account (docs/aws.md); YES=1 skips the confirmation
	$(BIN)/cdc-lake aws smoke $(if $(YES),--yes) $(ARGS)

# FULL=1 adds the tests of the other suites of which CI draws some, or which are smaller there.
.PHONY: test-faults
test-faults: $(VENV)/.dev setup ## kills, failpoints, broken stores, streams and records; FULL=1 tests more than CI
	$(BIN)/pytest $(SPREAD) cdc_lake_tests/faults \
		$(if $(FULL),cdc_lake_tests/integration cdc_lake_tests/e2e -m "not same_in_ci")

MINUTES ?= 20
.PHONY: soak
soak: $(VENV)/.dev setup ## MINUTES=20 of traffic and random kills, then a comparison of lake and source
	$(BIN)/python -m cdc_lake_tests.faults.kills.soak --minutes $(MINUTES) $(ARGS)

# Each program starts its own stack. Names choose programs: make bench ARGS="upsert_cost --rows 100000".
.PHONY: bench
bench: $(VENV)/.dev setup ## the benchmarks, 45 minutes, into benchmarks/results; FULL=1: larger sizes, three hours
	$(BIN)/python -m benchmarks $(if $(FULL),--full) $(ARGS)

.PHONY: bench-gate
bench-gate: $(VENV)/.dev setup ## CPU seconds against Delta and plain Hudi on a small size, with committed bounds
	$(BIN)/python -m benchmarks.gate

.PHONY: lock
lock: $(VENV)/.runtime ## resolve the newest versions
	$(BIN)/uv pip compile -q --upgrade --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-annotate --no-header --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-annotate --no-header --group image -c requirements.lock pyproject.toml -o requirements-image.lock
	$(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-annotate --no-header --group infra -c requirements.lock -c requirements-dev.lock -c requirements-image.lock pyproject.toml -o requirements-infra.lock
	$(BIN)/uv pip compile -q --upgrade --python-version 3.11 --generate-hashes --no-annotate --no-header benchmarks/peers/dlt_process/requirements.in -o benchmarks/peers/dlt_process/requirements.lock
	$(BIN)/uv pip compile -q --upgrade --python-version 3.11 --generate-hashes --no-annotate --no-header benchmarks/peers/hoodie_streamer/requirements.in -o benchmarks/peers/hoodie_streamer/requirements.lock
	# Each of these files pins one package, whose version is in the first line.
	for file in requirements-uv.lock $(wildcard infra/artifacts/java-*.lock); do \
		head -n 1 $$file | cut -d' ' -f1 | $(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-annotate --no-header - -o $$file.new && mv $$file.new $$file || exit 1; done

.PHONY: lock-jars
lock-jars: $(VENV)/.runtime ## fetch every jar and write its SHA-256 sum next to its pom
	$(BIN)/python -m infra.artifacts.jar_locks $(MODULES)

.PHONY: clean
clean: ## stop the stack, remove its state and the virtual environment
	-$(BIN)/cdc-lake down
	rm -rf .cdc-lake $(VENV)
