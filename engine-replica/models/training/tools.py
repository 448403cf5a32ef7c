"""The calculator, in the tool format of Qwen3."""
import json

from draw import ask, nd
from hard import op


def tool_schema(r):
    d = "Evaluate an arithmetic expression." if r is None else r.choice(
        ["Evaluate an arithmetic expression.", "Compute a sum.", "A calculator for arithmetic.", "Evaluates a math expression and returns the result."])
    p = {"type": "string"}
    if r is not None and r.random() < 0.4:
        p["description"] = r.choice(["The expression to evaluate", "For example 2 + 2", "Arithmetic expression"])
    return {"type": "function", "function": {"name": "calculator", "description": d, "parameters": {
        "type": "object", "properties": {"expression": p}, "required": ["expression"]}}}


def dump_tool(r, t):
    """Engines serialise JSON in several ways: mostly as Python does, sometimes compact or with sorted keys."""
    u = 1.0 if r is None else r.random()
    return json.dumps(t, sort_keys=u < 0.15, separators=(",", ":") if 0.1 < u < 0.25 else None)


def t_tool(r, lv):
    o = r.choice("+-*+-*2")
    if o == "2":
        a, b, c = nd(r, 1, 3), nd(r, 1, 2), nd(r, 1, 2)
        e = r.choice([f"{a} + {b} * {c}", f"({a} + {b}) * {c}", f"{a} * {b} - {c}"])
        q = ask(r, e)
    else:
        a, b = nd(r, 1, 5), nd(r, 1, 4)
        e, q = f"{a} {o} {b}", ask(r, op(r, a, o, b))
    v = str(eval(e))
    call = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "' + e + '"}}\n</tool_call>'
    return dict(q=q, think="Use the calculator.", a=call, value=v, key=f"tool {e}")
