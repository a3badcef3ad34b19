# Printed by `perfflow make`: print it again when a workflow is added. In the Makefile of the project:
#     PERF_SOURCES = $(wildcard src/*.c)
#     include perf.mk
# `make perf` runs every workflow that is not up to date, `make perf-NAME` one of them.
ifndef PERF_STAMPS
PERF_GOAL := $(.DEFAULT_GOAL)
PERFFLOW ?= perfflow
# Options of `perfflow run`.
PERFFLOW_FLAGS ?=
# Where a stamp is kept for each workflow that passed.
PERF_STAMPS := .perfflow/make
# Set before the include: files whose change makes every workflow run again, beside its own; and targets that must be
# done before, such as all. Without PERF_SOURCES a workflow that passed runs again only when its own files change.
PERF_SOURCES ?=
PERF_AFTER ?=
# Under make -j, workflows still run one after another: a build beside a measurement would disturb it.
PERF_ONE_AT_A_TIME ?= flock $(PERF_STAMPS)/lock

.PHONY: perf perf-cli-command perf-gpu-kernel perf-gpu-occupancy perf-gpu-regression perf-gpu-warp-efficiency perf-mojo-kernel perf-python-optimize perf-python-service perf-regression-gate perf-rust-hotpath perf-torch-ddp perf-torch-training
perf: perf-cli-command perf-gpu-kernel perf-gpu-occupancy perf-gpu-regression perf-gpu-warp-efficiency perf-mojo-kernel perf-python-optimize perf-python-service perf-regression-gate perf-rust-hotpath perf-torch-ddp perf-torch-training
perf-cli-command perf-gpu-kernel perf-gpu-occupancy perf-gpu-regression perf-gpu-warp-efficiency perf-mojo-kernel perf-python-optimize perf-python-service perf-regression-gate perf-rust-hotpath perf-torch-ddp perf-torch-training: perf-%: $(PERF_STAMPS)/%.pass

$(PERF_STAMPS)/cli-command.pass $(PERF_STAMPS)/gpu-kernel.pass $(PERF_STAMPS)/gpu-occupancy.pass $(PERF_STAMPS)/gpu-regression.pass $(PERF_STAMPS)/gpu-warp-efficiency.pass $(PERF_STAMPS)/mojo-kernel.pass $(PERF_STAMPS)/python-optimize.pass $(PERF_STAMPS)/python-service.pass $(PERF_STAMPS)/regression-gate.pass $(PERF_STAMPS)/rust-hotpath.pass $(PERF_STAMPS)/torch-ddp.pass $(PERF_STAMPS)/torch-training.pass: $(PERF_STAMPS)/%.pass: workflows/%.yaml $(PERF_SOURCES) | $(PERF_AFTER)
	@mkdir -p $(PERF_STAMPS)
	@rm -f $@
	$(PERF_ONE_AT_A_TIME) $(PERFFLOW) run $< $(PERFFLOW_FLAGS)
	@touch $@

$(PERF_STAMPS)/gpu-kernel.pass: perfflow/library/gpu-kernel.yaml
$(PERF_STAMPS)/gpu-occupancy.pass: perfflow/library/gpu-occupancy.yaml
$(PERF_STAMPS)/gpu-regression.pass: perfflow/library/gpu-regression.yaml
$(PERF_STAMPS)/gpu-warp-efficiency.pass: perfflow/library/gpu-warp-efficiency.yaml
$(PERF_STAMPS)/mojo-kernel.pass: perfflow/library/mojo-kernel.yaml
$(PERF_STAMPS)/python-optimize.pass: perfflow/library/python-optimize.yaml
$(PERF_STAMPS)/python-service.pass: perfflow/library/python-service.yaml
$(PERF_STAMPS)/regression-gate.pass: perfflow/library/regression-gate.yaml
.DEFAULT_GOAL := $(PERF_GOAL)
endif
