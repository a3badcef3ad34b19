"""Folders of NVIDIA's CUDA toolkit, and the command that installs it, for all adapters of its programs."""

from __future__ import annotations

import sysconfig

_SITE_PACKAGES = sysconfig.get_path("purelib")

PLACES = (
    "$CUDA_HOME/bin",
    "$CUDA_PATH/bin",
    "/usr/local/cuda/bin",
    # Wheels of PyPI, installed with perfflow or in the active environment.
    f"{_SITE_PACKAGES}/nvidia/cu*/bin",
    "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cu*/bin",
    "/usr/local/cuda-*/bin",
)
"""Folders of the toolkit's programs, which its installers do not add to PATH."""

COMPILER = "pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm"
"""Installs nvcc with its headers and the runtime. It needs a C++ compiler but no GPU."""
