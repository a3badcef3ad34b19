"""Templates of first workflows. ``@WORDS@`` are placeholders."""

from __future__ import annotations

WHERE = """
defaults:
  working-directory: @FOLDER@
"""

SHARE = """
worktree:
  # Ignored by git, but needed in both trees that a gate compares.
  share: @SHARED@
"""

OWN_PACKAGES = """
env:
  # Import the project's own packages first, as a gate does in its trees.
  PYTHONPATH: @FOLDERS@
"""

NOT_SHARED = """
# @WHY@
"""

BUILD = """  build:
    - id: build
      run: @BUILD@
"""

PROFILE = """\
  profile:
    # The functions that take the time, found by the profiler that fits the program and is installed.
    - {id: where, uses: auto, benchmark: program}
"""

SUITE_PROFILE = """\
  profile:
    # The functions that take the time, for at most two minutes. In a gate, only those of benchmarks that got slower.
    - {id: where, uses: auto}
"""

NATIVE = f"""\
{PROFILE}\
    # The heap at its peak, by the place of allocation, if the program is linked dynamically:
    #- {{id: heap, uses: massif, benchmark: program}}
"""

PYTHON = f"""\
{PROFILE}\
    # Memory at its peak, by line:
    #- {{id: heap, uses: tracemalloc, benchmark: program}}
"""

WITH_MAP = """\
  profile:
    # CPU time by function. Skipped if perf is missing. @RUNTIME@ writes the names of its functions to
    # /tmp/perf-PID.map. Finding inlined functions of @RUNTIME@ itself would take minutes.
    - id: cpu
      uses: perf
      benchmark: program
      env:
        @MAPPED@
      with: {inline-limit: 0}
"""

NODE = WITH_MAP.replace("@RUNTIME@", "Node.js").replace("@MAPPED@", "NODE_OPTIONS: --perf-basic-prof")
_DUMP = "-XX:+UnlockDiagnosticVMOptions -XX:+IgnoreUnrecognizedVMOptions -XX:+DumpPerfMapAtExit"
JAVA = WITH_MAP.replace("@RUNTIME@", "Java 17").replace("@MAPPED@", f"JAVA_TOOL_OPTIONS: {_DUMP}")

COMMAND = """\
perfflow: 1
name: @NAME@
description: How much time and memory does the program use, and in which functions?
@WHERE@
# Targets: `perfflow run @NAME@` fails if one is missed. Take the values from a first run:
#targets:
#  program:
#    time: <50ms
#    rss: <64MiB

stages:
@BUILD_STAGE@  baseline:
    - id: program
@NOTE@      run: @COMMAND@
      # Compare with another command or setting, in pairs:
      #candidate: ./other-program
      #candidate: {env: {THREADS: "2"}}
@PROFILE@  #verify:
    # All runs, and both sides of a comparison, must print the same output:
    #- {id: same-output, uses: same-output, benchmark: program, with: {runs: 2}}
"""

CARGO = """\
perfflow: 1
name: @NAME@
description: How much time and memory does the release build use, and in which functions?
@WHERE@
# Targets: `perfflow run @NAME@` fails if one is missed. Take the values from a first run:
#targets:
#  program:
#    time: <50ms
#    rss: <64MiB

stages:
  build:
    - id: release
      run: cargo build --release --target-dir target@WHAT@
      # Line numbers for the profilers. They do not change the code.
      env: {CARGO_PROFILE_RELEASE_DEBUG: line-tables-only}
  baseline:
    - id: program
      # Add its arguments, such as "target/release/program --size 10".
      run: @COMMAND@@OTHERS@
      # Compare with another command or setting, in pairs:
      #candidate: {env: {RAYON_NUM_THREADS: "2"}}
@PROFILE@  verify:
    - id: tests
      run: cargo test --release --target-dir target
      env: {CARGO_PROFILE_RELEASE_DEBUG: line-tables-only}
"""

CRITERION = """\
perfflow: 1
name: @NAME@
description: How fast is each @HARNESS@ benchmark, what does it allocate, and where does its time go?
@WHERE@
# Targets: `perfflow run @NAME@` fails if one is missed. Globs match several benchmarks:
#targets:
#  "decode/*": {time p50: <2ms, alloc: <2KB/op}

stages:
  baseline:
    # Compare with another build setting, in pairs: candidate: {env: {CARGO_PROFILE_BENCH_LTO: fat}}
    - {id: suite, uses: cargo-bench, benchmark: "*", with: {@PACKAGES@bench: @BENCHES@}}
  profile: # in a gate, only what regressed
    - {id: hotspots, uses: perf, benchmark: "*"}
    - {id: allocations, uses: dhat, benchmark: "*"}
    - {id: heap, uses: massif, benchmark: "*"}
  verify:
    - {id: tests, run: cargo test --release}
"""

PYTEST = """\
perfflow: 1
name: @NAME@
description: How long does each benchmark of the suite take?
@WHERE@
params:
  python: {default: @PYTHON@, help: the interpreter that has pytest-benchmark}
  files: {default: @PATHS@, help: files with benchmarks}

# Targets: `perfflow run @NAME@` fails if one is missed. Globs match several benchmarks:
#targets:
#  "**::test_parse":
#    time: <2ms

stages:
  baseline:
    - id: suite
      uses: pytest-benchmark
      # Names from the suite: tests/test_x.py::test_y
      benchmark: "*"
      with:
        python: ${{ params.python }}
        paths: ${{ params.files }}
      # Compare with another setting, in pairs. To compare two copies of a package, see
      # `perfflow show pytest-benchmark-suite`.
      #candidate: {env: {MODE: fast}}
@PROFILE@  verify:
    # Run the same files as tests, each benchmark once.
    - id: tests
      run: ${{ params.python }} -m pytest -q --benchmark-disable ${{ params.files }}
"""

GOOGLE = """\
perfflow: 1
name: @NAME@
description: How long does each benchmark of the program take?
@WHERE@
# Targets: `perfflow run @NAME@` fails if one is missed. Globs match several benchmarks:
#targets:
#  "BM_Parse/*":
#    time: <2ms

stages:
@BUILD_STAGE@  baseline:
    - id: suite
      uses: google-benchmark
      # Names from the program: BM_Parse/1024
      benchmark: "*"
      with:
        command: @COMMAND@@OTHERS@
      # Compare with another build, in pairs:
      #candidate: ../before/build/bench
@PROFILE@"""

ASV = """\
perfflow: 1
name: @NAME@
description: How long does each benchmark of the asv suite take?
@WHERE@
params:
  python: {default: @PYTHON@, help: the interpreter that has asv and the project}

# Targets: `perfflow run @NAME@` fails if one is missed. Globs match several benchmarks:
#targets:
#  "**time_parse*":
#    time: <2ms

stages:
  baseline:
    - id: suite
      uses: asv
      # Names from the suite: bench_x.Suite.time_y
      benchmark: "*"
      with:
        config: @CONFIG@
        python: ${{ params.python }}
        # Select benchmarks with a regular expression:
        #bench: time_parse
@PROFILE@"""

PYPERF = """\
perfflow: 1
name: @NAME@
description: How long does each pyperf benchmark take?
@WHERE@
params:
  python: {default: @PYTHON@, help: the interpreter that has pyperf}

# Targets: `perfflow run @NAME@` fails if one is missed. Globs match several benchmarks:
#targets:
#  "parse*":
#    time: <2ms

stages:
  baseline:
@STEPS@@PROFILE@"""

PYPERF_STEP = """\
    - id: @ID@
      uses: pyperf
      # Names from the script.
      benchmark: "@PREFIX@*"
      with:
        script: @SCRIPT@
        python: ${{ params.python }}
"""
