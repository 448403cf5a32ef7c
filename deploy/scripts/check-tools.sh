#!/usr/bin/env bash
# Says everything at once that a build or a test needs and this machine lacks, with the way to get it.
set -euo pipefail
missing=()
command -v cargo >/dev/null || missing+=("cargo and rustc 1.89 or later: https://rustup.rs, or your distribution's rustup package")
command -v cc >/dev/null || missing+=("a C compiler, for rustls's ring: on Debian \`apt-get install gcc libc6-dev\`")
command -v python3 >/dev/null || missing+=("python3 with pip, to fetch the model and run the official client: on Debian \`apt-get install python3-venv\`")
[ ${#missing[@]} -eq 0 ] && exit 0
printf 'missing: %s\n' "${missing[@]}" >&2
exit 1
