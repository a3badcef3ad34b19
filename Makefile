# Shortcuts for developers. The work is done by scripts/ and perfflow.
.PHONY: help example test docs format schema fragment reference

help:
	@echo 'make example  install missing programs, run workflows/cli-command.yaml'
	@echo 'make perf     run all workflows that are out of date; to run one: make perf-cli-command'
	@echo 'make test     install missing programs, run all checks and tests'
	@echo 'make docs     build the documentation as a site in site/; a broken link fails'
	@echo 'make reference  write what docs/reference has from the code'
	@echo 'make format   format the code'
	@echo 'make schema   write schemas/workflow.schema.json from the model'
	@echo 'make fragment write perf.mk from workflows/'

example:
	sh scripts/example

test:
	sh scripts/test

docs:
	.venv/bin/python -c 'import material, pymdownx' 2>/dev/null || sh scripts/install docs
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

reference:
	.venv/bin/python -m scripts.reference_tables

format:
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

schema:
	.venv/bin/perfflow schema > schemas/workflow.schema.json

fragment:
	$(PERFFLOW) make > perf.mk.new
	mv perf.mk.new perf.mk

ifneq ($(wildcard .venv/bin/perfflow)$(shell command -v perfflow 2>/dev/null),)
PERFFLOW ?= $(or $(wildcard .venv/bin/perfflow),perfflow)
else ifndef PERFFLOW
# In a fresh clone perfflow is installed first.
PERFFLOW := .venv/bin/perfflow
PERF_AFTER := $(PERFFLOW)
.venv/bin/perfflow:
	sh scripts/install tools
endif
# Files that the workflows measure. When one changes, all workflows are out of date.
PERF_SOURCES = $(wildcard $(shell git ls-files examples 2>/dev/null))
include perf.mk
