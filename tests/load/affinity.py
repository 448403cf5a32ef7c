"""Whether a conversation's turns reach the replica that has its beginning, and how evenly replicas are loaded.

Six cells for each system: conversations that share nothing and such that share an 8 KB system prompt, each with no key, with
`user` in the body, and with session headers. The replicas themselves note which of them got each turn.
"""

import http.client
import json
import random
import threading

SESSIONS = 32
TURNS = 8
# A turn's body is so much longer than that of the turn before it.
STEP_BYTES = 32 * 1024
MESSAGE_BYTES = 8 * 1024
SHARED_BYTES = 8 * 1024
# An engine's time to the first byte in microseconds: turns of different conversations overlap.
FIRST_BYTE_US = 20_000
CELLS = [(shared, key) for shared in (0, SHARED_BYTES) for key in ("none", "user", "header")]
ANSWER_SECONDS_MAX = 60


def words(dice, size):
    """`size` bytes of text that no other call gives."""
    return dice.randbytes(size // 2).hex()


def conversation(session, shared):
    """The messages of each turn, turn by turn."""
    dice = random.Random(session)
    messages = [{"role": "system", "content": shared}] if shared else []
    messages.append({"role": "user", "content": f"[[S:{session}]] {words(dice, MESSAGE_BYTES)}"})
    size = len(shared) + MESSAGE_BYTES
    for turn in range(TURNS):
        while size < (turn + 1) * STEP_BYTES or messages[-1]["role"] != "user":
            role = "assistant" if messages[-1]["role"] == "user" else "user"
            messages.append({"role": role, "content": words(dice, MESSAGE_BYTES)})
            size += MESSAGE_BYTES
        yield list(messages)


def hold(port, session, shared, key, errors):
    """Holds one conversation to its end; what goes wrong is added to `errors`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS_MAX)
    headers = {"content-type": "application/json"}
    if key == "header":
        headers |= {"x-session-id": f"sess-{session}", "x-smg-routing-key": f"sess-{session}"}
    try:
        for messages in conversation(session, shared):
            body = {"model": "mock-model", "messages": messages, "max_tokens": 100}
            if key == "user":
                body["user"] = f"sess-{session}"
            connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                errors.append(f"status {answer.status}: {text[:200].decode(errors='replace')}")
                return
    except (OSError, http.client.HTTPException) as error:
        errors.append(f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def cell(port, first_session, shared_bytes, key):
    """Plays one cell; what went wrong."""
    shared = words(random.Random(first_session), shared_bytes) if shared_bytes else ""
    errors = []
    numbers = range(first_session, first_session + SESSIONS)
    threads = [threading.Thread(target=hold, args=(port, number, shared, key, errors)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def judge(visits, replicas):
    """Of the replicas that each session's turns reached: the share of later turns at the first one's, and the hottest over the mean."""
    later = sum(len(visit) - 1 for visit in visits)
    same = sum(place == visit[0] for visit in visits for place in visit[1:])
    loads = [sum(visit.count(replica) for visit in visits) for replica in range(replicas)]
    return same / max(later, 1), max(loads) / max(sum(loads) / replicas, 1e-9)


def render(rows):
    """The table: a line for each system, a column for each cell; the lowest and the highest where a cell was played more than once."""
    heads = ["system"] + [f"{'shared system prompt' if shared else 'own prompts'}, {key}" for shared, key in CELLS]
    lines = [heads, ["---"] * len(heads)]
    for system in dict.fromkeys(row["system"] for row in rows):
        cells = []
        for shared, key in CELLS:
            mine = [row for row in rows if (row["system"], row["shared"], row["key"]) == (system, shared, key)]
            cells.append(show(mine) if mine else "–")
        lines.append([system, *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(rows):
    """One cell."""
    shares = sorted(f"{row['affinity']:.2f}" for row in rows)
    share = shares[0] if shares[0] == shares[-1] else f"{shares[0]}–{shares[-1]}"
    errors = sum(len(row["errors"]) for row in rows)
    return f"{share} (hottest {max(row['hottest'] for row in rows):.2f}x)" + (f" {errors} errors" if errors else "")
