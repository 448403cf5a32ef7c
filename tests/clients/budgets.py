"""Asks one question through the official client under several budgets of thinking, whole and streamed; prints one JSON object per answer.

usage: budgets.py BASE_URL QUESTION BUDGET...
"""

import json
import sys

from openai import OpenAI


def main() -> None:
    base_url, question, *budgets = sys.argv[1:]
    client = OpenAI(base_url=f"{base_url}/v1", api_key="unused", max_retries=0, timeout=120)
    model = client.models.list().data[0].id
    for budget in map(int, budgets):
        request = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "temperature": 0,
            "max_tokens": 400,
            "extra_body": {"thinking_token_budget": budget},
        }
        answer = client.chat.completions.create(**request)
        choice = answer.choices[0]
        print_row(budget, getattr(choice.message, "reasoning_content", None), choice.message.content, choice.finish_reason, answer.usage)
        reasoning, content, finish, usage = "", "", None, None
        for chunk in client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                content += choice.delta.content or ""
                finish = choice.finish_reason or finish
        print_row(budget, reasoning or None, content or None, finish, usage)


def print_row(budget, reasoning, content, finish, usage) -> None:
    row = {
        "budget": budget,
        "reasoning": reasoning,
        "content": content,
        "finish_reason": finish,
        "reasoning_tokens": usage.completion_tokens_details.reasoning_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    print(json.dumps(row), flush=True)


main()
