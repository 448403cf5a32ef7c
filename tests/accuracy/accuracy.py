"""What thinking costs and buys: held-out questions asked in both lanes through a real gateway and real replicas.

usage: accuracy.py [--lanes | --budgets 0,8,none [--svg FILE]] [--items FILE] [--tasks add,mul2] [--url http://HOST:PORT | --bin-dir DIR]

Starts `gateway up` with two replicas of the built-in model and ends it again, or asks the endpoint at --url. An answer is right when
its content is the expected one, white space at its ends aside. An answer that was cut inside its reasoning is wrong.

With --budgets the thinking lane is asked once under each `thinking_token_budget`, and the table (and the drawing) has a row a budget.

With --lanes it asks each question a third time, without a word about thinking, of a gateway whose policy chooses the lane by difficulty,
and prints what always thinking, never thinking and the policy's choice come to.
"""
import argparse
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import curve

THINK_POLICY = pathlib.Path(__file__).resolve().parents[2] / "routing-policies/policies/think.toml"
HERE = pathlib.Path(__file__).resolve().parent
LANES = ("no think", "think")
CHARACTER_TOKENS_MAX = 3  # by so many tokens thinking may exceed its budget, to finish a character
START_SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 300


def read_items(path, tasks=None):
    """The items of a file, those of `tasks` where some are named."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    if tasks:
        strangers = sorted(set(tasks) - {row["task"] for row in rows})
        if strangers:
            sys.exit(f"--tasks: {path} has no task {', '.join(strangers)}")
        rows = [row for row in rows if row["task"] in tasks]
    return rows


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def system(bin_dir, replicas, policy=None):
    """A gateway with its replicas, as a base URL."""
    gateway = bin_dir / "gateway"
    if not gateway.is_file():
        sys.exit(f"no {gateway}; build it with `cargo build --release -p gateway -p engine-replica`, or name a folder with --bin-dir")
    listen, admin = (f"127.0.0.1:{free_port()}" for _ in range(2))
    command = [gateway, "up", "--replicas", str(replicas), "--listen", listen, "--admin-listen", admin, "--no-sample"]
    if policy:
        command += ["--policy", policy]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + START_SECONDS_MAX
        while not is_ready(admin):
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                sys.exit(f"the gateway did not come up:\n{process.communicate()[1]}")
            time.sleep(0.05)
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.communicate()


def is_ready(admin):
    try:
        with urllib.request.urlopen(f"http://{admin}/readyz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def read_budgets(text):
    """`0,8,none` as numbers, with None for no budget."""
    budgets = [None if word == "none" else int(word) for word in text.split(",")]
    if any(budget is not None and budget < 0 for budget in budgets):
        raise ValueError("a budget is 0 tokens or more, or none")
    return budgets


def ask(url, item, thinks, max_tokens, budget=None):
    """One item in one lane, or in the policy's where `thinks` is None: (right, reasoning tokens, tokens in all). A budget that is exceeded
    ends the program."""
    body = {"messages": item["messages"], "max_tokens": max_tokens, "temperature": 0}
    if thinks is not None:
        body["chat_template_kwargs"] = {"enable_thinking": thinks}
    if budget is not None:
        body["thinking_token_budget"] = budget
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX) as reply:
            told = score(json.load(reply), item["answer"])
    except urllib.error.HTTPError as error:
        sys.exit(f"{item['task']}: {error} {error.read().decode(errors='replace')}")
    if budget is not None and told[1] > budget + CHARACTER_TOKENS_MAX:
        sys.exit(f"{item['task']}: {told[1]} tokens of reasoning under a budget of {budget}")
    return told


def score(reply, expected):
    content = reply["choices"][0]["message"]["content"] or ""
    usage = reply["usage"]
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    return content.strip() == expected, reasoning, usage["completion_tokens"]


def mean(values):
    return sum(values) / len(values)


def rows(items, scores):
    """Per task and then per group: name, count, and for each lane the share that is right and the mean tokens.

    `scores` holds for each item its score in each lane. A group's figures are means over its tasks, not over items.
    """
    tasks = {}
    for item, lanes in zip(items, scores):
        tasks.setdefault((item["task"], item["hard"]), []).append(lanes)
    out, groups = [], {True: [], False: []}
    for (task, hard), lanes in sorted(tasks.items(), key=lambda row: not row[0][1]):
        figures = [mean([one[lane][figure] for one in lanes]) for figure in range(3) for lane in range(2)]
        groups[hard].append(figures)
        out.append((task, hard, len(lanes), figures))
    for hard, name in ((True, "mean of hard"), (False, "mean of easy")):
        if groups[hard]:
            out.append((name, hard, sum(row[2] for row in out if row[1] == hard and not row[0].startswith("mean")),
                        [mean(column) for column in zip(*groups[hard])]))
    return out


def table(found):
    out = ["| task | kind | items | right, no think | right, think | reasoning tokens | tokens, no think | tokens, think |",
           "|---|---|--:|--:|--:|--:|--:|--:|"]
    for name, hard, count, (off, on, _, reasoning, short, long) in found:
        out.append(f"| {name} | {'hard' if hard else 'easy'} | {count} | {off:.0%} | {on:.0%} | {reasoning:.1f} | {short:.1f} | {long:.1f} |")
    return "\n".join(out)


def draw(url, pool, items, args):
    """Asks without thinking and under each budget; prints the table and writes the drawing."""
    columns = [(False, None), *((True, budget) for budget in args.budgets)]
    work = [(item, *column) for item in items for column in columns]
    told = list(pool.map(lambda one: ask(url, one[0], one[1], args.max_tokens, one[2]), work))
    by_item = [told[at:at + len(columns)] for at in range(0, len(told), len(columns))]
    found = curve.summary(items, by_item)
    print(curve.table(args.budgets, found))
    if args.svg:
        title = "Right answers of the built-in model by the budget of its thinking"
        args.svg.write_text(curve.svg(args.budgets, found, title), encoding="utf-8")


WAYS = {"never think": False, "always think": True, "policy's lanes": None}


def ways_rows(items, scores):
    """Per way: items right, tokens, and both as shares of always thinking; over all items, the hard and the easy ones.

    `scores` holds for each item its score in each of WAYS.
    """
    out = []
    for name, kept in (("all", (True, False)), ("hard", (True,)), ("easy", (False,))):
        chosen = [one for item, one in zip(items, scores) if item["hard"] in kept]
        if not chosen:
            continue
        figures = [(mean([one[way][0] for one in chosen]), mean([one[way][2] for one in chosen])) for way in range(len(WAYS))]
        right, tokens = figures[list(WAYS).index("always think")]
        for way, (its_right, its_tokens) in zip(WAYS, figures):
            out.append((name, len(chosen), way, its_right, its_tokens, its_right / right if right else 0.0, its_tokens / tokens))
    return out


def ways_table(found):
    out = ["| questions | items | way | right | tokens | right, of always think | tokens, of always think |", "|---|--:|---|--:|--:|--:|--:|"]
    for name, count, way, right, tokens, of_right, of_tokens in found:
        out.append(f"| {name} | {count} | {way} | {right:.1%} | {tokens:.1f} | {of_right:.1%} | {of_tokens:.1%} |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=pathlib.Path, default=HERE / "held_out.jsonl", help="JSON lines: task, hard, messages, answer")
    parser.add_argument("--tasks", type=lambda text: text.split(","), help="only these, comma separated")
    parser.add_argument("--url", help="an endpoint that is up already, such as http://127.0.0.1:8080")
    parser.add_argument("--bin-dir", type=pathlib.Path, default=HERE.parents[1] / "target/release", help="where gateway and engine-replica are")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--at-a-time", type=int, default=8, help="requests in flight")
    parser.add_argument("--max-tokens", type=int, default=320, help="most tokens an answer may take, reasoning among them")
    parser.add_argument("--budgets", type=read_budgets, help="the curve: budgets in tokens, comma separated, `none` among them")
    parser.add_argument("--svg", type=pathlib.Path, help="draws the curve there")
    parser.add_argument("--lanes", action="store_true", help="never, always, and as the policy's lanes choose")
    parser.add_argument("--policy", type=pathlib.Path, default=THINK_POLICY, help="for --lanes: a policy whose lanes honour wishes")
    parser.add_argument("--json", action="store_true", help="one JSON object a row instead of a table")
    args = parser.parse_args()
    if args.svg and not args.budgets:
        parser.error("--svg draws the curve: name its --budgets")
    if args.lanes and args.budgets:
        parser.error("--lanes and --budgets ask different questions: name one of them")
    items = read_items(args.items, args.tasks)
    with contextlib.ExitStack() as stack:
        url = args.url or stack.enter_context(system(args.bin_dir, args.replicas, args.policy if args.lanes else None))
        pool = stack.enter_context(ThreadPoolExecutor(args.at_a_time))
        if args.budgets:
            draw(url, pool, items, args)
            return
        ways = list(WAYS.values()) if args.lanes else [False, True]
        work = [(item, thinks) for item in items for thinks in ways]
        told = list(pool.map(lambda one: ask(url, *one, args.max_tokens), work))
    if args.lanes:
        found = ways_rows(items, [told[at:at + len(ways)] for at in range(0, len(told), len(ways))])
        keys = ["questions", "items", "way", "right", "tokens", "right_of_always", "tokens_of_always"]
        print("\n".join(json.dumps(dict(zip(keys, row))) for row in found) if args.json else ways_table(found))
        return
    found = rows(items, list(zip(told[::2], told[1::2])))
    if not args.json:
        print(table(found))
        return
    names = ["right", "reasoning_tokens", "tokens"]
    for name, hard, count, figures in found:
        by_lane = {lane: dict(zip(names, figures[at::2])) for at, lane in enumerate(LANES)}
        print(json.dumps({"task": name, "hard": hard, "items": count, **by_lane}))


if __name__ == "__main__":
    main()
