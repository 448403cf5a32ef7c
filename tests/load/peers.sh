#!/usr/bin/env bash
# Makes the Python environments of the peers that run.py measures, one for each: they would overwrite each other's scripts.
set -euo pipefail

home="${PEERS_VENV:-$HOME/.cache/pinion}"
mkdir -p "$home"
for peer in peers-smg=smg==1.13.0 peers-sglang=sglang-router==0.3.2 peers-vllm=vllm-router==0.1.17; do
    environment="$home/${peer%%=*}"
    package="${peer#*=}"
    if [ ! -e "$environment/.made-$package" ]; then
        python3 -m venv "$environment"
        "$environment/bin/pip" install --quiet --disable-pip-version-check "$package"
        touch "$environment/.made-$package"
    fi
done
echo "$home"
