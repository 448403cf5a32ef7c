#!/usr/bin/env bash
# A Python environment with the official clients, in the user's cache folder; prints the path of its Python.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv="${XDG_CACHE_HOME:-$HOME/.cache}/pinion/venv-clients"
stamp="$venv/requirements.installed"
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    command -v python3 >/dev/null || { echo "setup.sh: no python3; install Python 3.9 or later" >&2; exit 1; }
    python3 -m venv "$venv" >&2 || { echo "setup.sh: python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$stamp"
fi
echo "$venv/bin/python"
