# `make` lists the targets. Everything is installed inside this folder: .venv (Python) and .tools (pi and its Node).
# Needed beforehand: python3 (3.11 or later, with venv), make, git, node 20 or later with npm.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One place says which pi and which Node are meant: the installer of the product itself.
PI_VERSION := $(shell sed -n 's/^PINNED_PI = "\(.*\)"/\1/p' goalkeeper/pi/install.py)
NODE_VERSION := $(shell sed -n 's/^PINNED_NODE = "\(.*\)"/\1/p' goalkeeper/pi/install.py)
OLD_PI_VERSION := 0.84.4
PEER_VERSION := 0.1.3

NPM_INSTALL := npm install --no-package-lock --no-fund --no-audit --loglevel=error --prefix
PI_PACKAGE := @earendil-works/pi-coding-agent
PEER_PACKAGE := @nicknisi/pi-orchestrate

VENV_STAMP := $(VENV)/.installed
PI_STAMP := .tools/pi/.installed-$(PI_VERSION)-$(NODE_VERSION)
OLD_PI_STAMP := .tools/pi-old/.installed-$(OLD_PI_VERSION)
PEER_STAMP := .tools/peer/.installed-$(PEER_VERSION)

export GOALKEEPER_PI := $(CURDIR)/.tools/pi/node_modules/.bin/pi
export GOALKEEPER_OLD_PI := $(CURDIR)/.tools/pi-old/node_modules/.bin/pi
export GOALKEEPER_PEER := $(CURDIR)/.tools/peer/node_modules/$(PEER_PACKAGE)/index.ts

.DEFAULT_GOAL := help
.PHONY: help setup demo check format test bench docs clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

setup: $(VENV_STAMP) $(PI_STAMP) $(OLD_PI_STAMP) ## install Python packages, pi and Node into this folder

demo: setup ## watch a goal being kept in a small project, with a scripted model and real pi
	$(BIN)/goalkeeper demo

check: $(VENV_STAMP) ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV_STAMP) ## rewrite the files as `make check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: setup ## all tests; ARGS="-k name" for some
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

bench: setup $(PEER_STAMP) ## measure, and write docs/benchmarks.md; ARGS="--only name" for some
	$(BIN)/python -m goalkeeper.bench $(ARGS)

docs: $(VENV_STAMP) ## write the generated parts of docs/ anew
	$(BIN)/python -m goalkeeper.cli.reference docs

clean: ## remove what the other targets installed or made
	rm -rf $(VENV) .tools build dist goalkeeper.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	rm -rf .hypothesis .coverage

$(VENV_STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# The stamps carry the versions, so that a new version installs anew and an interrupted install is done again.
$(PI_STAMP):
	rm -rf .tools/pi
	mkdir -p .tools/pi
	$(NPM_INSTALL) .tools/pi node@$(NODE_VERSION) $(PI_PACKAGE)@$(PI_VERSION)
	touch $@

$(OLD_PI_STAMP): $(PI_STAMP)
	rm -rf .tools/pi-old
	mkdir -p .tools/pi-old
	$(NPM_INSTALL) .tools/pi-old $(PI_PACKAGE)@$(OLD_PI_VERSION)
	ln -s ../../../pi/node_modules/.bin/node .tools/pi-old/node_modules/.bin/node
	touch $@

$(PEER_STAMP):
	rm -rf .tools/peer
	mkdir -p .tools/peer
	$(NPM_INSTALL) .tools/peer --legacy-peer-deps --ignore-scripts $(PEER_PACKAGE)@$(PEER_VERSION)
	touch $@
