"""llama.cpp as npm's node-llama-cpp brings it, prebuilt: installed into the user's cache, never into this repository."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "3.22.1"
NAME = f"llama.cpp (node-llama-cpp {VERSION})"
PLATFORMS = {("Linux", "x86_64"): "linux-x64", ("Linux", "aarch64"): "linux-arm64"}
SCRIPT = Path(__file__).with_name("peer.mjs")


def default_folder():
    """Where the package is kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pinion" / "node"


def install(folder):
    """Puts the pinned version into `folder`, unless it is there."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not installed: `apt-get install nodejs npm` (node 20 or later), or measure "
                     "the replica alone with --no-peer")
    if installed(folder) == VERSION:
        return
    build = PLATFORMS.get((platform.system(), platform.machine()))
    if build is None:
        sys.exit(f"no prebuilt llama.cpp is known here for {platform.system()} {platform.machine()}: use --no-peer")
    folder.mkdir(parents=True, exist_ok=True)
    # Its optional packages are builds for GPUs, 600 MB of them; the one for this CPU is named instead.
    argv = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional",
            f"node-llama-cpp@{VERSION}", f"@node-llama-cpp/{build}@{VERSION}"]
    done = subprocess.run([str(word) for word in argv], stdout=sys.stderr)
    if done.returncode != 0 or installed(folder) != VERSION:
        sys.exit(f"npm could not install node-llama-cpp {VERSION} into {folder}: see above, or use --no-peer")


def installed(folder):
    """The version that is there, or None."""
    try:
        return json.loads((folder / "node_modules/node-llama-cpp/package.json").read_text())["version"]
    except (OSError, ValueError, KeyError):
        return None


def command(folder, args, model):
    """The command line of one run."""
    return ["node", SCRIPT, "--modules", folder, "--model", model, "--prompt-tokens", args.prompt_tokens,
            "--streams", args.streams, "--decode-tokens", args.decode_tokens, "--threads", args.threads]


def read(line):
    """The figures of one line that the script printed: (measure, prompt tokens, streams) -> value."""
    row = json.loads(line)
    return {(row["measure"], row["prompt_tokens"], row.get("streams", 1)): row["value"]}
