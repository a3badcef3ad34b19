"""Why Nsight Compute measured nothing, from its own words (``==ERROR==``) in its log and on stderr, with the remedy."""

from __future__ import annotations

import re

from perfflow.tools.tool_files import clean_name

_ERROR = re.compile(r"^==ERROR== (?P<text>.+)$", re.MULTILINE)
_LONGEST = 200
_REASONS = {
    "ERR_NVGPUCTRPERM": "only administrators may read the counters of the GPU (ERR_NVGPUCTRPERM): run as root or with "
    "CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    r"failed to connect to the CUDA driver|no CUDA-capable device|CUDA driver could not be|libcuda\.so": "it reaches "
    "no NVIDIA GPU: ncu cannot connect to the CUDA driver",
    "driver is not compatible|driver (?:version )?is (?:insufficient|too old)|not supported on": "the GPU or its "
    "driver does not suit this version of ncu: {text}",
    "driver resource was unavailable|concurrently collecting|another (?:tool|profiler)|DCGM": "another profiler holds "
    "the counters of the GPU: end it, or pause DCGM by `dcgmi profile --pause`",
    "Could not open report": "there is no such report: {text}",
    "Failed to (?:load|open) report": "ncu cannot read the report: it is damaged, cut short or of a newer version",
    r"application returned an error code \((?P<code>-?\d{1,10})\)": "the program exited with {code} under ncu",
    "^==ERROR== ": "ncu failed: {text}",
    "No kernels were profiled": "no kernel was profiled: the program launched none on a GPU that `kernel`, `skip` and "
    "`nvtx` let through",
}
"""What ncu says, and what that means, the most telling first."""


def reason(*texts: str) -> str:
    """Why nothing was measured, the best reason first; '' where ncu complains of nothing.

    Only lines that begin with ``==ERROR==`` or ``==WARNING==`` are ncu's: a program may print the same words.
    """
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    own = "\n".join(lines)
    first = _ERROR.search(own)
    text = clean_name(first["text"])[:_LONGEST] if first else ""
    for pattern, said in _REASONS.items():
        if found := re.search(pattern, own, re.IGNORECASE | re.MULTILINE):
            return said.format(text=text, **found.groupdict())
    return ""
