# Targets for people; everything they do is in scripts/.
.PHONY: help example test docs format schema fragment reference

help:
	@echo 'make example  install what is missing, run workflows/cli-command.yaml'
	@echo 'make perf     run what has changed of workflows/; one of them: make perf-cli-command'
	@echo 'make test     install what is missing, run all checks and tests'
	@echo 'make docs     build the documentation as a site in site/; a broken link fails'
	@echo 'make reference  write the tables of docs/tools and docs/reference/commands.md from the code'
	@echo 'make format   format the code'
	@echo 'make schema   write schemas/workflow.schema.json from the model'
	@echo 'make fragment write perf.mk from workflows/'

example:
	sh scripts/example

test:
	sh scripts/test

docs:
	[ -x .venv/bin/mkdocs ] || sh scripts/install docs
	.venv/bin/mkdocs build --strict --quiet

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
# What workflows/ measure; one that passed runs again when these change.
PERF_SOURCES = $(wildcard $(shell git ls-files examples 2>/dev/null))
include perf.mk
