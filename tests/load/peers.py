"""LLM routers that the gateway is measured beside, each from its own Python environment.

    tests/load/peers.sh          makes the environments below ~/.cache/pinion, or below $PEERS_VENV

They need apart homes: `smg` and `sglang-router` install scripts of the same name, and the later one wins. For the same
reason they are started as modules here.
"""

import os
import sys
from pathlib import Path

from processes import Process

HOME = Path(os.environ.get("PEERS_VENV", Path.home() / ".cache" / "pinion"))
# Name -> (environment, module, policy, port, port of its metrics, more arguments). The policies are each router's default or, where
# that one reads nothing of these requests or asks the engines for a rendering of each prompt, the one that holds sessions best.
PEERS = {
    "smg": ("peers-smg", "smg.launch_router", "cache_aware", 19202, 19292,
            ["--history-backend", "none", "--log-level", "warn"]),
    "sglang": ("peers-sglang", "sglang_router.launch_router", "cache_aware", 19203, 19293,
               ["--history-backend", "none", "--log-level", "warn"]),
    # Below `warning`, consistent_hash writes a line for each request.
    "vllm": ("peers-vllm", "vllm_router.launch_router", "consistent_hash", 19204, 19294, ["--log-level", "warning"]),
    "vllm-sticky": ("peers-vllm", "vllm_router.launch_router", "sticky_least_loaded", 19205, 19295,
                    ["--log-level", "warning"]),
}


def port(name):
    """Where a peer listens."""
    return PEERS[name][3]


def ports():
    """All ports that peers use."""
    return [number for peer in PEERS.values() for number in peer[3:5]]


def start(name, replica_ports, scratch):
    """A peer's process; it is not ready yet."""
    environment, module, policy, listen, metrics, more = PEERS[name]
    python = HOME / environment / "bin" / "python"
    if not python.exists():
        sys.exit(f"no {python}: run tests/load/peers.sh (or set PEERS_VENV), or leave `{name}` out of --systems")
    urls = [f"http://127.0.0.1:{replica}" for replica in replica_ports]
    return Process(
        [python, "-m", module, "--host", "127.0.0.1", "--port", listen, "--worker-urls", *urls, "--policy", policy,
         "--prometheus-host", "127.0.0.1", "--prometheus-port", metrics, *more],
        scratch / f"{name}.log")
