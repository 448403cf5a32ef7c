#!/usr/bin/env bash
# NVIDIA's NVRTC, a compiler that needs no GPU, in the user's cache folder; prints the path of its library. This release is the
# oldest whose code every driver for CUDA 13 takes.
set -euo pipefail
package=nvidia-cuda-nvrtc==13.0.88
venv="${XDG_CACHE_HOME:-$HOME/.cache}/pinion/venv-nvrtc"
stamp="$venv/$package"
if [ ! -e "$stamp" ]; then
    command -v python3 >/dev/null || { echo "nvrtc.sh: no python3; install Python 3.9 or later" >&2; exit 1; }
    python3 -m venv "$venv" >&2 || { echo "nvrtc.sh: python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$package" >&2 ||
        { echo "nvrtc.sh: pip cannot install $package; the tests that compile the CUDA kernels with NVRTC will be skipped" >&2; exit 1; }
    touch "$stamp"
fi
echo "$venv"/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13
