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
    prompt, streams = row["prompt_tokens"], row["streams"]
    found = {("decode", prompt, streams): row["decode_tokens_per_second"]}
    if streams == 1:
        found["prefill", prompt, 1] = row["prefill_tokens_per_second"]
        found["ttft_cold", prompt, 1] = row["cold_ttft_seconds"] * 1000
        found["ttft_warm", prompt, 1] = row["warm_ttft_seconds"] * 1000
    return found
