"""Why Nsight Compute measured nothing, from its own words (``==ERROR==``) in its log and on stderr, with the remedy."""

from __future__ import annotations

import re

from perfflow.tools.tool_files import clean_name

_ERROR = re.compile(r"^==ERROR== (?P<text>.+)$", re.MULTILINE)
_LONGEST = 200
_FORBIDDEN = (
    "only administrators may read the counters of the GPU (ERR_NVGPUCTRPERM): run as root or with CAP_SYS_ADMIN, or "
    "load the driver with NVreg_RestrictProfilingToAdminUsers=0"
)
_REASONS = (
    (
        re.compile("ERR_NVGPUCTRPERM"),
        _FORBIDDEN,
    ),
    (
        re.compile(
            r"failed to connect to the CUDA driver|no CUDA-capable device|CUDA driver could not be|libcuda\.so",
            re.IGNORECASE,
        ),
        "it reaches no NVIDIA GPU: ncu cannot connect to the CUDA driver",
    ),
    (
        re.compile(
            r"driver is not compatible|driver (?:version )?is (?:insufficient|too old)|not supported on", re.IGNORECASE
        ),
        "the GPU or its driver does not suit this version of ncu: {text}",
    ),
    (
        re.compile(
            r"driver resource was unavailable|concurrently collecting|another (?:tool|profiler)|DCGM", re.IGNORECASE
        ),
        "another profiler holds the counters of the GPU: end it, or pause DCGM by `dcgmi profile --pause`",
    ),
    (
        re.compile(r"Could not open report", re.IGNORECASE),
        "there is no such report: {text}",
    ),
    (
        re.compile(r"Failed to (?:load|open) report", re.IGNORECASE),
        "ncu cannot read the report: it is damaged, cut short or of a newer version",
    ),
    (
        re.compile(r"application returned an error code \((?P<code>-?\d{1,10})\)", re.IGNORECASE),
        "the program exited with {code} under ncu",
    ),
    (re.compile(r"^==ERROR== ", re.MULTILINE), "ncu failed: {text}"),
    (
        re.compile(r"No kernels were profiled", re.IGNORECASE),
        "no kernel was profiled: the program launched none on a GPU that `kernel`, `skip` and `nvtx` let through",
    ),
)


def reason(*texts: str) -> str:
    """Why nothing was measured, the best reason first; '' where ncu complains of nothing.

    Only lines that begin with ``==ERROR==`` or ``==WARNING==`` are ncu's: a program may print the same words.
    """
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    own = "\n".join(lines)
    first = _ERROR.search(own)
    text = clean_name(first["text"])[:_LONGEST] if first else ""
    for pattern, said in _REASONS:
        if found := pattern.search(own):
            return said.format(text=text, **found.groupdict())
    return ""
