# Targets for people; everything they do is in scripts/.
.PHONY: help example test format schema

help:
	@echo 'make example  install what is missing, run workflows/cli-command.yaml'
	@echo 'make test     install what is missing, run all checks and tests'
	@echo 'make format   format the code'
	@echo 'make schema   write schemas/workflow.schema.json from the model'

example:
	sh scripts/example

test:
	sh scripts/test

format:
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

schema:
	.venv/bin/perfflow schema > schemas/workflow.schema.json
