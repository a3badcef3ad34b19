# Printed by `perfflow make`. Print it again after adding a workflow. Use it in the Makefile of the project:
#     PERF_SOURCES = $(wildcard src/*.c)
#     include perf.mk
# `make perf` runs all workflows that are out of date and that this machine can run. `make perf-NAME` runs one.
ifndef PERF_STAMPS
PERF_GOAL := $(.DEFAULT_GOAL)
PERFFLOW ?= perfflow
# Options of `perfflow run`.
PERFFLOW_FLAGS ?=
# Folder with a stamp for each workflow: NAME.pass if it passed, NAME.out if this machine cannot run it.
PERF_STAMPS := .perfflow/make
# Set these before the include. PERF_SOURCES: files that make every workflow out of date when they change; without it,
# only changes to its own files do. PERF_AFTER: targets to make before any workflow, such as all.
PERF_SOURCES ?=
PERF_AFTER ?=
# Workflows run one after another, even under make -j: a build would disturb a measurement.
PERF_ONE_AT_A_TIME ?= flock $(PERF_STAMPS)/lock
# Workflows that could not run are tried again after a program was installed or a GPU was added.
PERF_MACHINE := $(wildcard $(subst :, ,$(PATH)) /dev/nvidiactl)
PERF_OUT := $(patsubst $(PERF_STAMPS)/%.out,%,$(wildcard $(PERF_STAMPS)/*.out))
PERF_NAMES := cli-command compilers gpu-kernel gpu-occupancy gpu-regression gpu-warp-efficiency mojo-kernel own-cost python-optimize python-service regression-gate rust-hotpath torch-ddp torch-training

define PERF_RUN
@mkdir -p $(PERF_STAMPS)
@rm -f $(PERF_STAMPS)/$*.pass $(PERF_STAMPS)/$*.out
$(PERF_QUIET)$(PERF_LEFT_OUT) $(PERF_ONE_AT_A_TIME) $(PERFFLOW) run $< $(PERFFLOW_FLAGS)
@test -e $(PERF_STAMPS)/$*.out || touch $(PERF_STAMPS)/$*.pass
endef

.PHONY: perf $(PERF_NAMES:%=perf-%)
perf: $(foreach name,$(PERF_NAMES),$(PERF_STAMPS)/$(name).$(if $(filter $(name),$(PERF_OUT)),out,pass))
perf: PERF_LEFT_OUT = PERFFLOW_LEFT_OUT=$(PERF_STAMPS)/$*.out
perf: PERF_QUIET = @
$(PERF_NAMES:%=perf-%): perf-%: $(PERF_STAMPS)/%.pass

$(PERF_STAMPS)/cli-command.pass $(PERF_STAMPS)/compilers.pass $(PERF_STAMPS)/gpu-kernel.pass $(PERF_STAMPS)/gpu-occupancy.pass $(PERF_STAMPS)/gpu-regression.pass $(PERF_STAMPS)/gpu-warp-efficiency.pass $(PERF_STAMPS)/mojo-kernel.pass $(PERF_STAMPS)/own-cost.pass $(PERF_STAMPS)/python-optimize.pass $(PERF_STAMPS)/python-service.pass $(PERF_STAMPS)/regression-gate.pass $(PERF_STAMPS)/rust-hotpath.pass $(PERF_STAMPS)/torch-ddp.pass $(PERF_STAMPS)/torch-training.pass: $(PERF_STAMPS)/%.pass: workflows/%.yaml $(PERF_SOURCES) | $(PERF_AFTER)
	$(PERF_RUN)

$(PERF_STAMPS)/cli-command.out $(PERF_STAMPS)/compilers.out $(PERF_STAMPS)/gpu-kernel.out $(PERF_STAMPS)/gpu-occupancy.out $(PERF_STAMPS)/gpu-regression.out $(PERF_STAMPS)/gpu-warp-efficiency.out $(PERF_STAMPS)/mojo-kernel.out $(PERF_STAMPS)/own-cost.out $(PERF_STAMPS)/python-optimize.out $(PERF_STAMPS)/python-service.out $(PERF_STAMPS)/regression-gate.out $(PERF_STAMPS)/rust-hotpath.out $(PERF_STAMPS)/torch-ddp.out $(PERF_STAMPS)/torch-training.out: $(PERF_STAMPS)/%.out: workflows/%.yaml $(PERF_SOURCES) $(PERF_MACHINE) | $(PERF_AFTER)
	$(PERF_RUN)

$(PERF_STAMPS)/gpu-kernel.pass $(PERF_STAMPS)/gpu-kernel.out: perfflow/library/gpu-kernel.yaml
$(PERF_STAMPS)/gpu-occupancy.pass $(PERF_STAMPS)/gpu-occupancy.out: perfflow/library/gpu-occupancy.yaml
$(PERF_STAMPS)/gpu-regression.pass $(PERF_STAMPS)/gpu-regression.out: perfflow/library/gpu-regression.yaml
$(PERF_STAMPS)/gpu-warp-efficiency.pass $(PERF_STAMPS)/gpu-warp-efficiency.out: perfflow/library/gpu-warp-efficiency.yaml
$(PERF_STAMPS)/mojo-kernel.pass $(PERF_STAMPS)/mojo-kernel.out: perfflow/library/mojo-kernel.yaml
$(PERF_STAMPS)/python-optimize.pass $(PERF_STAMPS)/python-optimize.out: perfflow/library/python-optimize.yaml
$(PERF_STAMPS)/python-service.pass $(PERF_STAMPS)/python-service.out: perfflow/library/python-service.yaml
$(PERF_STAMPS)/regression-gate.pass $(PERF_STAMPS)/regression-gate.out: perfflow/library/regression-gate.yaml

PERF_NEW := $(filter-out workflows/cli-command.yaml workflows/compilers.yaml workflows/gpu-kernel.yaml workflows/gpu-occupancy.yaml workflows/gpu-regression.yaml workflows/gpu-warp-efficiency.yaml workflows/mojo-kernel.yaml workflows/own-cost.yaml workflows/python-optimize.yaml workflows/python-service.yaml workflows/regression-gate.yaml workflows/rust-hotpath.yaml workflows/torch-ddp.yaml workflows/torch-training.yaml,$(wildcard workflows/*.yaml workflows/*.yml))
ifneq ($(strip $(PERF_NEW)),)
.PHONY: perf-new
perf: perf-new
perf-new: ; @:$(info new workflows, not run: $(PERF_NEW); to include them: perfflow make > perf.mk)
endif
.DEFAULT_GOAL := $(PERF_GOAL)
endif
