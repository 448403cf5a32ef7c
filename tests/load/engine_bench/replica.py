"""This project's own engine, by its own `bench` command."""

import json


def command(bin_dir, args, model):
    """The command line of one run."""
    return [bin_dir / "engine-replica", "bench", "--model", model, "--prompt-tokens", args.prompt_tokens,
            "--streams", args.streams, "--decode-tokens", args.decode_tokens, "--threads", args.threads,
            "--runs", 1, "--json"]


def read(line):
    """The figures of one line that `bench --json` printed: (measure, prompt tokens, streams) -> value."""
    row = json.loads(line)
    return {}
