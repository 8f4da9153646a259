# `make help` lists the targets. All that is installed goes into .venv.

# The interpreter that makes .venv: 3.11 or newer, with its venv module.
PYTHON ?= python3
# More arguments for pytest: make test ARGS='-k layout -x'; for mutants: make mutants ARGS=--help
ARGS ?=
# How many times as long as the suite `make fuzz` goes on.
FUZZ ?= 50
# A workload log for the benchmarks: make bench SWF=some.swf.gz
SWF ?=

# Where the environment is; `make test-all` has one for each interpreter.
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help setup demo test test-all test-short clients fuzz swarm mutants bench bench-peers soak soak-serve check docs pictures site format-check lint imports types format wheel lock \
	clean distclean

help: ## list the targets
	@echo "usage: make TARGET [PYTHON=python3.12] [ARGS='-k word'] [SWF=log.swf.gz]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv with the locked packages and simctl itself; quick when nothing changed
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh .ci/setup

demo: setup ## show how an sbatch becomes tasks, and where plugins are called
	@$(BIN)/simctl run scenarios/two_nodes.yaml --explain
	@printf '\nNext:  %s\n' '$(BIN)/simctl run node_crash --explain     the same, and a node dies'
	@printf '       %s\n' '$(BIN)/simctl repl two_nodes               step by step, stop in a call' \
		'$(BIN)/simctl new plugin mine --type switch a plugin of your own, tested' \
		'docs/tutorial.md                                   what all of this means'

# A file of tests stays with one worker, for what its tests share; the tests start many interpreters,
# which need simctl compiled, whatever the environment says of bytecode.
test: setup ## run the whole test suite; ARGS goes to pytest
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-all: ## run the whole suite under each Python from 3.11 to 3.14 that is here; ARGS as for test
	@PYTHON="$(PYTHON)" ARGS="$(ARGS)" sh .ci/each test

# What tells whether simctl works under an interpreter at all: it imports, the demo runs, every shipped
# scenario gives the same trace, databases and commands work.
test-short: demo
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile tests/test_shipped_scenarios.py tests/test_database.py \
		tests/test_cli.py tests/test_buf.py tests/test_pytest_plugin.py $(ARGS)

fuzz: setup ## feed every reader with damaged input, FUZZ times as long as the suite does
	@SIMCTL_FUZZ="$(FUZZ)" $(BIN)/python -m pytest --timeout=0 tests/test_hostile_fuzz.py tests/test_hostile_state.py $(ARGS)

clients: setup ## fetch clients of Slurm (submitit, dask-jobqueue, parsl, snakemake), and serve them
	@SIMCTL_CLIENTS="$(VENV)-clients" $(BIN)/python -m pytest -n 0 --timeout=600 -rs tests/test_serve_clients.py $(ARGS)

swarm: setup ## run a thousand random clusters, and check that nothing is lost; ARGS=--help
	@$(BIN)/simctl swarm --runs 1000 $(ARGS)

mutants: setup ## mutate the lifecycle code in a copy, and report what no test notices
	@$(BIN)/python -m tests.mutants $(ARGS)

bench: setup ## measure what should be fast; SWF=FILE replays that log as well
	@$(BIN)/python -m benchmarks.run $(if $(SWF),--swf "$(SWF)")

bench-peers: setup ## run the same jobs in simpy, a bare lifecycle each, beside simctl; ARGS='--jobs N'
	@$(BIN)/python -m benchmarks.peers $(ARGS)

soak: setup ## run a million jobs, and see that memory stays flat; an hour or so; ARGS='--jobs N'
	@$(BIN)/python -m benchmarks.soak $(ARGS)

soak-serve: setup ## serve a cluster to a swarm of clients and faults for an hour; ARGS='--minutes N'
	@$(BIN)/python -m benchmarks.soak_serve $(ARGS)

docs: setup ## write the pages and pictures of docs/ that come from the code
	@$(BIN)/python -m simctl.plugins.points.page > docs/lifecycle.md
	@$(BIN)/python -m simctl.orderings.page > docs/orderings.md
	@$(BIN)/python -m simctl.view.readme > docs/step.svg
	@$(BIN)/python -m simctl.story.page > docs/glossary.md
	@$(BIN)/python -m simctl.reports.api_page > docs/api.md

pictures: setup ## take the pictures of docs/viewing.md in a Chromium; look at them before they are committed
	@$(BIN)/python -m tests.pictures $(ARGS)

site: ## build docs/ as a site that can be searched, into site/; open site/index.html
	@PYTHON="$(PYTHON)" sh .ci/site

check: format-check lint imports types ## check format, lint, import rules and types

format-check: setup
	@$(BIN)/ruff format --check .

lint: setup
	@$(BIN)/ruff check .

imports: setup
	@$(BIN)/lint-imports --no-logo

types: setup
	@$(BIN)/mypy

format: setup ## put the code into shape, with the fixes that are safe
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

wheel: setup ## build an sdist, and from it a wheel, into dist/
	@$(BIN)/python -m build --no-isolation --outdir dist .

lock: setup ## renew requirements.lock with the newest packages that fit
	@PYTHON="$(PYTHON)" sh .ci/lock

clean: ## remove what was built and the tools' caches
	@rm -rf dist build site .pytest_cache .ruff_cache .mypy_cache .hypothesis .mutants .import_linter_cache
	@find . -path "./.venv*" -prune -o -type d -name __pycache__ -exec rm -rf {} +

distclean: clean ## as clean, and remove the environments
	@rm -rf .venv .venv-3.* .venv-docs
