"""Asks one question through the official client, thinking and not, whole and streamed; prints one JSON object per answer.

usage: reasoning.py BASE_URL QUESTION

The client has no field for reasoning of its own: it hands on what it does not know, as applications read it today.
"""

import json
import sys

from openai import OpenAI


def main() -> None:
    base_url, question = sys.argv[1:3]
    client = OpenAI(base_url=f"{base_url}/v1", api_key="unused", max_retries=0, timeout=120)
    model = client.models.list().data[0].id
    for thinks in (True, False):
        request = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "temperature": 0,
            "extra_body": {"chat_template_kwargs": {"enable_thinking": thinks}},
        }
        answer = client.chat.completions.create(**request)
        message = answer.choices[0].message
        print_row(thinks, False, getattr(message, "reasoning_content", None), message.content, answer.usage)
        reasoning, content, usage = "", "", None
        for chunk in client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                content += choice.delta.content or ""
        print_row(thinks, True, reasoning or None, content or None, usage)


def print_row(thinks, streamed, reasoning, content, usage) -> None:
    row = {
        "thinks": thinks,
        "streamed": streamed,
        "reasoning": reasoning,
        "content": content,
        "reasoning_tokens": usage.completion_tokens_details.reasoning_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    print(json.dumps(row), flush=True)


main()
