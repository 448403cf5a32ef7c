"""Holds a conversation through the official client and prints one JSON object per turn.

usage: conversation.py BASE_URL TURNS SESSION_ID|- SYSTEM_FILE

The client keeps the growing list of messages, as any application does. With `-` it sends nothing that names the
session.
"""

import json
import sys
import time

from openai import OpenAI

QUESTIONS = [
    "Name one thing the harbour is known for.",
    "And what would a visitor eat there?",
    "Is it far from the station?",
    "What should I pack?",
    "How long does the walk take?",
    "Thank you. One last tip?",
]


def main() -> None:
    base_url, turns, session, system_file = sys.argv[1:5]
    headers = {} if session == "-" else {"x-session-id": session}
    client = OpenAI(base_url=f"{base_url}/v1", api_key="unused", default_headers=headers, max_retries=0, timeout=120)
    model = client.models.list().data[0].id
    with open(system_file, encoding="utf-8") as file:
        messages = [{"role": "system", "content": file.read()}]
    for turn in range(int(turns)):
        messages.append({"role": "user", "content": QUESTIONS[turn % len(QUESTIONS)]})
        sent = time.monotonic()
        raw = client.chat.completions.with_raw_response.create(
            model=model,
            messages=messages,
            max_tokens=24,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        text, ttft, finish, usage = "", None, None, None
        for chunk in raw.parse():
            if chunk.usage is not None:
                usage = chunk.usage
            for choice in chunk.choices:
                if choice.delta.content:
                    ttft = ttft if ttft is not None else time.monotonic() - sent
                    text += choice.delta.content
                finish = choice.finish_reason or finish
        messages.append({"role": "assistant", "content": text})
        print(
            json.dumps(
                {
                    "replica": raw.headers.get("x-pinion-replica"),
                    "reason": raw.headers.get("x-pinion-reason"),
                    "text": text,
                    "finish": finish,
                    "ttft_s": ttft,
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.completion_tokens,
                    "cached_tokens": usage.prompt_tokens_details.cached_tokens,
                    "reasoning_tokens": usage.completion_tokens_details.reasoning_tokens,
                }
            ),
            flush=True,
        )


main()
