"""Where NVIDIA's CUDA toolkit is, and what installs it; what adapters of its programs share."""

from __future__ import annotations

import sysconfig

_SITE_PACKAGES = sysconfig.get_path("purelib")

PLACES = (
    "$CUDA_HOME/bin",
    "$CUDA_PATH/bin",
    "/usr/local/cuda/bin",
    # The wheels of PyPI, beside perfflow or in the active environment.
    f"{_SITE_PACKAGES}/nvidia/cu*/bin",
    "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cu*/bin",
    "/usr/local/cuda-*/bin",
)
"""Folders of the toolkit's programs, which its installers leave apart from PATH."""

COMPILER = "pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm"
"""What installs nvcc with its headers and the runtime, without a GPU; a C++ compiler has to be there."""
