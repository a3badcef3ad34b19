"""Texts of first workflows; ``@WORDS@`` are replaced."""

from __future__ import annotations

WHERE = """
defaults:
  working-directory: @FOLDER@
"""

SHARE = """
worktree:
  # Ignored by git, and needed in each of the two trees that a gate compares.
  share: @SHARED@
"""

OWN_PACKAGES = """
env:
  # The project's own packages come first, as they do in the trees of a gate.
  PYTHONPATH: @FOLDERS@
"""

NOT_SHARED = """
# @WHY@
"""

BUILD = """  build:
    - id: build
      run: @BUILD@
"""

NATIVE = """\
  profile:
    # Where the time goes, and what is on the heap at its peak; skipped where perf or valgrind is missing.
    - {id: cpu, uses: perf, benchmark: program}
    - {id: heap, uses: massif, benchmark: program}
"""

OTHER = """\
  profile:
    # Where the time goes; skipped where perf is missing.
    - {id: cpu, uses: perf, benchmark: program}
"""

WITH_MAP = """\
  profile:
    # Where the time goes; skipped where perf is missing. @RUNTIME@ writes names of its functions to /tmp/perf-PID.map.
    # Looking for inlined functions of @RUNTIME@ itself would take minutes.
    - id: cpu
      uses: perf
      benchmark: program
      env:
        @MAPPED@
      with: {inline_limit: 0}
"""

NODE = WITH_MAP.replace("@RUNTIME@", "Node.js").replace("@MAPPED@", "NODE_OPTIONS: --perf-basic-prof")
_DUMP = "-XX:+UnlockDiagnosticVMOptions -XX:+IgnoreUnrecognizedVMOptions -XX:+DumpPerfMapAtExit"
JAVA = WITH_MAP.replace("@RUNTIME@", "Java 17").replace("@MAPPED@", f"JAVA_TOOL_OPTIONS: {_DUMP}")

PYTHON = """\
  profile:
    # Every call, samples of the running program (skipped where py-spy is missing), and who holds memory at its peak.
    - {id: calls, uses: cprofile, benchmark: program}
    - {id: sampled, uses: py-spy, benchmark: program}
    - {id: heap, uses: tracemalloc, benchmark: program}
    # With memray in the program's environment also what C code allocates:
    #- {id: allocations, uses: memray, benchmark: program}
"""

COMMAND = """\
perfflow: 1
name: @NAME@
description: How long does it take, what does it need, and where does the time go?
@WHERE@
# What has to hold; `perfflow run @NAME@` fails where it does not. Take the values from a first run:
#targets:
#  program:
#    time: <50ms
#    rss: <64MiB

stages:
@BUILD_STAGE@  baseline:
    - id: program
      uses: command
      with:
@NOTE@        command: @COMMAND@
      # Another command or setting to compare it with, measured in pairs:
      #candidate: ./other-program
      #candidate: {env: {THREADS: "2"}}
@PROFILE@  #verify:
    # Every run, and both sides of a comparison, must print the same:
    #- {id: same-output, uses: same-output, benchmark: program, with: {runs: 2}}
"""

CARGO = """\
perfflow: 1
name: @NAME@
description: How long does the release build take, what does it need, and where does the time go?
@WHERE@
# What has to hold; `perfflow run @NAME@` fails where it does not. Take the values from a first run:
#targets:
#  program:
#    time: <50ms
#    rss: <64MiB

stages:
  build:
    - id: release
      run: cargo build --release --target-dir target@WHAT@
      # Line numbers for the profilers; they do not change the code.
      env: {CARGO_PROFILE_RELEASE_DEBUG: line-tables-only}
  baseline:
    - id: program
      uses: command
      with:
        # With its arguments, such as "target/release/program --size 10".
        command: @COMMAND@@OTHERS@
      # Another command or setting to compare it with, measured in pairs:
      #candidate: {env: {RAYON_NUM_THREADS: "2"}}
  profile:
    # Where the time goes, and what is on the heap at its peak; skipped where perf or valgrind is missing.
    - {id: cpu, uses: perf, benchmark: program}
    - {id: heap, uses: massif, benchmark: program}
  verify:
    - id: tests
      run: cargo test --release --target-dir target
      env: {CARGO_PROFILE_RELEASE_DEBUG: line-tables-only}
"""

CRITERION = """\
perfflow: 1
name: @NAME@
description: How long does each @HARNESS@ benchmark of the crate take?
@WHERE@
# What has to hold; `perfflow run @NAME@` fails where it does not. Globs name several benchmarks:
#targets:
#  "decode/*":
#    time: <2ms

stages:
  baseline:
    - id: suite
      uses: cargo-bench
      # The suite's own names, such as group/function/value
      benchmark: "*"
      with:
        @PACKAGES@bench: @BENCHES@
      # Other features, or another setting of the build, to compare with, measured in pairs:
      #candidate: {with: {features: [simd]}}
      #candidate: {env: {CARGO_PROFILE_BENCH_LTO: fat}}
  verify:
    - id: tests
      run: cargo test --release
"""

PYTEST = """\
perfflow: 1
name: @NAME@
description: How long does each benchmark of the suite take?
@WHERE@
params:
  python: {default: @PYTHON@, help: the interpreter that has pytest-benchmark}
  files: {default: @PATHS@, help: files with benchmarks}

# What has to hold; `perfflow run @NAME@` fails where it does not. Globs name several benchmarks:
#targets:
#  "**::test_parse":
#    time: <2ms

stages:
  baseline:
    - id: suite
      uses: pytest-benchmark
      # The suite's own names: tests/test_x.py::test_y
      benchmark: "*"
      with:
        python: ${{ params.python }}
        paths: ${{ params.files }}
      # Another setting to compare with, measured in pairs; to compare two copies of a package see
      # `perfflow show pytest-benchmark-suite`.
      #candidate: {env: {MODE: fast}}
  verify:
    # The same files as tests, each benchmark run once.
    - id: tests
      run: ${{ params.python }} -m pytest -q --benchmark-disable ${{ params.files }}
"""

GOOGLE = """\
perfflow: 1
name: @NAME@
description: How long does each benchmark of the program take?
@WHERE@
# What has to hold; `perfflow run @NAME@` fails where it does not. Globs name several benchmarks:
#targets:
#  "BM_Parse/*":
#    time: <2ms

stages:
@BUILD_STAGE@  baseline:
    - id: suite
      uses: google-benchmark
      # The program's own names: BM_Parse/1024
      benchmark: "*"
      with:
        command: @COMMAND@@OTHERS@
      # Another build to compare it with, measured in pairs:
      #candidate: ../before/build/bench
"""

ASV = """\
perfflow: 1
name: @NAME@
description: How long does each benchmark of the asv suite take?
@WHERE@
params:
  python: {default: @PYTHON@, help: the interpreter that has asv and the project}

# What has to hold; `perfflow run @NAME@` fails where it does not. Globs name several benchmarks:
#targets:
#  "**time_parse*":
#    time: <2ms

stages:
  baseline:
    - id: suite
      uses: asv
      # The suite's own names: bench_x.Suite.time_y
      benchmark: "*"
      with:
        config: @CONFIG@
        python: ${{ params.python }}
        # Only some of them, by a regular expression:
        #bench: time_parse
"""

PYPERF = """\
perfflow: 1
name: @NAME@
description: How long does each pyperf benchmark take?
@WHERE@
params:
  python: {default: @PYTHON@, help: the interpreter that has pyperf}

# What has to hold; `perfflow run @NAME@` fails where it does not. Globs name several benchmarks:
#targets:
#  "parse*":
#    time: <2ms

stages:
  baseline:
@STEPS@"""

PYPERF_STEP = """\
    - id: @ID@
      uses: pyperf
      # The script's own names.
      benchmark: "@PREFIX@*"
      with:
        script: @SCRIPT@
        python: ${{ params.python }}
"""
