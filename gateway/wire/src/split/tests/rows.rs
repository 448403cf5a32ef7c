//! The bug cases of others that a splitter can have, with their ids, and a few more. A tool call stays in the content, in its markup.

use super::{Row, check};

#[test]
fn each_part_goes_to_its_field() {
    for row in ROWS {
        check(row);
    }
}

const ROWS: &[Row] = &[
    (
        "RC-001",
        (
            "qwen3",
            Some("<|im_start|>assistant\n<think>\n\n</think>\n\n"),
            Some(false),
        ),
        &["The ket", "tle is ", "blue."],
        (None, Some("The kettle is blue.")),
    ),
    (
        "RC-005",
        ("qwen3", Some("<|im_start|>assistant\n"), Some(true)),
        &["Lantern ", "ready."],
        (None, Some("Lantern ready.")),
    ),
    (
        "RC-008",
        ("minimax-m3", Some("]~b]ai\n"), Some(false)),
        &["</mm:think>", "Four ", "pegs."],
        (None, Some("Four pegs.")),
    ),
    (
        "RC-009",
        ("olmo3", Some("<|assistant|>\n<think>"), None),
        &[
            "need an example",
            "</think>",
            "Put ",
            "<think>",
            " before your private notes.",
        ],
        (
            Some("need an example"),
            Some("Put <think> before your private notes."),
        ),
    ),
    (
        "RC-011",
        ("none", Some(""), None),
        &["Wrap notes in <think>", " and </think>", " tags."],
        (None, Some("Wrap notes in <think> and </think> tags.")),
    ),
    (
        "RC-012",
        ("qwen3", Some("<|im_start|>assistant\n"), None),
        &[
            "Sure. ",
            "<think>",
            "check the ferry times",
            "</think>",
            "Leave at noon.",
        ],
        (Some("check the ferry times"), Some("Sure. Leave at noon.")),
    ),
    (
        "RC-013",
        ("minimax-m2", Some("]~b]ai\n<think>\n"), None),
        &["</think>", "<think>", "real thought", "</think>", "Yes."],
        (Some("real thought"), Some("Yes.")),
    ),
    (
        "RC-015",
        ("step3p5", Some("<think>\n"), None),
        &["Stack the bowls.", "\n", "</think>", "\n", "Done."],
        (Some("Stack the bowls."), Some("Done.")),
    ),
    (
        "RC-016",
        ("deepseek-r1", Some("<think>\n"), None),
        &[
            "give code",
            "</think>",
            "\n\n",
            "    let",
            " a = 1;\n",
            "    drop(a);\n",
        ],
        (Some("give code"), Some("    let a = 1;\n    drop(a);\n")),
    ),
    (
        "RC-017",
        ("qwen3", Some("<|im_start|>assistant\n"), None),
        &["Use ", "<", "my-tag", ">", " here."],
        (None, Some("Use <my-tag> here.")),
    ),
    (
        "RC-019",
        (
            "granite-3.2",
            Some("<|start_of_role|>assistant<|end_of_role|>"),
            Some(true),
        ),
        &[
            "Here",
            "'s my thou",
            "ght process: count the pins. ",
            "Here is my res",
            "ponse: Six pins.",
        ],
        (Some(" count the pins. "), Some(" Six pins.")),
    ),
    (
        "RC-023",
        ("gemma4", Some("<|tool_response>…<turn|>"), None),
        &["<|channel>", "thought\n", "<channel|>", "Rain at ", "six."],
        (None, Some("Rain at six.")),
    ),
    (
        "RC-024",
        ("gemma4", Some("<|turn>model\n"), Some(true)),
        &[
            "<|channel>",
            "tho",
            "ught",
            "\nlook at the map",
            "<channel|>",
            "Go left.",
        ],
        (Some("look at the map"), Some("Go left.")),
    ),
    (
        "RC-025",
        ("gpt-oss", Some("<|start|>assistant"), None),
        &[
            "<|channel|>analysis<|message|>Halve it",
            ".<|end|><|start|>assistant<|channel|>final<|message|>It is 12",
            ".<|return|>",
        ],
        (Some("Halve it."), Some("It is 12.")),
    ),
    (
        "RC-027",
        ("gpt-oss", Some("<|start|>assistant"), None),
        &[
            "<|channel|>analysis<|message|>no tool needed<|end|>",
            "<|start|>assistant<|channel|>final<|message|>",
            "Hello there.",
            "<|return|>",
        ],
        (Some("no tool needed"), Some("Hello there.")),
    ),
    (
        "RC-028",
        ("gpt-oss", Some("<|start|>assistant"), None),
        &[
            "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>commentary<|message|>I will look it up.<|end|>",
            "<|start|>assistant<|channel|>commentary to=functions.tide_table <|constrain|>json<|message|>{\"port\":\"Brell\"}<|call|>",
        ],
        (
            Some("plan"),
            Some(
                "I will look it up.<|channel|>commentary to=functions.tide_table <|constrain|>json<|message|>{\"port\":\"Brell\"}<|call|>",
            ),
        ),
    ),
    (
        "RC-030",
        ("magistral", Some("[/INST]"), None),
        &[
            "[THINK]", "one", "[/THINK]", "Part A. ", "[TH", "INK]", "two", "[/TH", "INK]",
            "Part B.",
        ],
        (Some("onetwo"), Some("Part A. Part B.")),
    ),
    (
        "RC-031",
        ("ernie45", Some("<think>\n"), None),
        &[
            "measure twice\n",
            "</think>",
            "\n\n<resp",
            "onse>\n",
            "Cut once.\n",
            "</response>",
            "\n",
        ],
        (Some("measure twice"), Some("Cut once.")),
    ),
    (
        "RC-033",
        ("seed-oss", Some("<seed:bos>assistant\n"), None),
        &[
            "<seed:think>",
            "try A ",
            "<seed:cot_budget_reflect>",
            "128 used, 384 left",
            "</seed:cot_budget_reflect>",
            " try B",
            "</seed:think>",
            "B works.",
        ],
        (
            Some(
                "try A <seed:cot_budget_reflect>128 used, 384 left</seed:cot_budget_reflect> try B",
            ),
            Some("B works."),
        ),
    ),
    (
        "RC-034",
        (
            "deepseek-v3.1",
            Some("<｜Assistant｜></think>"),
            Some(false),
        ),
        &["Plain ", "reply."],
        (None, Some("Plain reply.")),
    ),
    (
        "RC-036",
        ("deepseek-r1", Some("<think>\n"), None),
        &["There are ", "many ways"],
        (Some("There are many ways"), None),
    ),
    (
        "RC-037",
        ("qwen3-thinking-2507", Some("<think>\n"), None),
        &["weigh it", "<", "/", "think", ">", "Two kilos."],
        (Some("weigh it"), Some("Two kilos.")),
    ),
    (
        "RC-038",
        ("qwen3-thinking-2507", Some("<think>\n"), None),
        &["weigh it <", "/think>Two", " kilos."],
        (Some("weigh it "), Some("Two kilos.")),
    ),
    (
        "RC-040",
        ("qwen3", Some("<|im_start|>assistant\n"), None),
        &["Check that a <", " b, then write c <"],
        (None, Some("Check that a < b, then write c <")),
    ),
    (
        "RC-042",
        ("deepseek-r1", Some("<think>\n"), None),
        &["first ", "last bit</think>\n\nThe an", "swer."],
        (Some("first last bit"), Some("The answer.")),
    ),
    (
        "RC-043",
        ("qwen3", Some("<|im_start|>assistant\n"), None),
        &["<think>short</think>Ans", "wer two."],
        (Some("short"), Some("Answer two.")),
    ),
    (
        "RC-050",
        ("deepseek-r1", Some("<think>\n"), None),
        &["long ", "thought"],
        (Some("long thought"), None),
    ),
    (
        "RC-051",
        (
            "qwen3",
            Some("<|im_start|>assistant\n<think>The gate is"),
            None,
        ),
        &[" shut.", "</think>", "Climb."],
        (Some(" shut."), Some("Climb.")),
    ),
    (
        "RC-052",
        ("qwen3.5", Some("<think>\n"), None),
        &[
            "Ask the table.\n",
            "<tool_call>\n<func",
            "tion=get_tide>\n<parameter=port>\nBrell\n</parameter>\n</function>\n</tool_call>",
        ],
        (
            Some("Ask the table."),
            Some(
                "<tool_call>\n<function=get_tide>\n<parameter=port>\nBrell\n</parameter>\n</function>\n</tool_call>",
            ),
        ),
    ),
    (
        "RC-055",
        (
            "kimi-k2-thinking",
            Some("<|im_assistant|>assistant<|im_middle|>"),
            None,
        ),
        &[
            "<think>",
            "look up",
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>functions.get_tide:0<|tool_call_argument_begin|>{\"port\":\"Brell\"}<|tool_call_end|>",
            "<|tool_calls_section_end|>",
        ],
        (
            Some("look up"),
            Some(
                "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_tide:0<|tool_call_argument_begin|>{\"port\":\"Brell\"}<|tool_call_end|><|tool_calls_section_end|>",
            ),
        ),
    ),
    (
        "RC-057",
        ("qwen3", Some("<|im_start|>assistant\n"), None),
        &[
            "<think>",
            "call",
            "</think>\n\n<tool_call>\n{\"name\": \"get_tide\", \"arguments\": {\"port\": \"Brell\"}}\n</tool_call>",
        ],
        (
            Some("call"),
            Some(
                "<tool_call>\n{\"name\": \"get_tide\", \"arguments\": {\"port\": \"Brell\"}}\n</tool_call>",
            ),
        ),
    ),
    (
        "RC-058",
        ("qwen3-thinking-2507", Some("<think>\n"), None),
        &[
            "call",
            "</think>",
            "<tool",
            "_call>\n{\"name\": \"get_tide\", ",
            "\"arguments\": {\"port\": \"Brell\"}}\n</tool_call>",
        ],
        (
            Some("call"),
            Some(
                "<tool_call>\n{\"name\": \"get_tide\", \"arguments\": {\"port\": \"Brell\"}}\n</tool_call>",
            ),
        ),
    ),
    (
        "RC-060",
        (
            "qwen3",
            Some("<|im_start|>assistant\n<think>\n\n</think>\n\n"),
            Some(false),
        ),
        &[
            "<tool_call>\n{\"name\": \"get_tide\", \"arguments\": {\"port\": \"Oss\"}}",
            "\n</tool_call>",
        ],
        (
            None,
            Some(
                "<tool_call>\n{\"name\": \"get_tide\", \"arguments\": {\"port\": \"Oss\"}}\n</tool_call>",
            ),
        ),
    ),
    (
        "RC-141",
        ("qwen3", Some("<|im_start|>assistant\n"), Some(true)),
        &["{\"n\"", ": 4}"],
        (None, Some("{\"n\": 4}")),
    ),
    (
        "a text that begins like a label is kept",
        ("gemma4", Some("<|turn>model\n"), Some(true)),
        &["<|channel>", "though it rains", "<channel|>", "Go."],
        (Some("though it rains"), Some("Go.")),
    ),
    (
        "a closer in an answer is text",
        ("qwen3", None, None),
        &["<think>a</think>b </think> c"],
        (Some("a"), Some("b </think> c")),
    ),
    (
        "a mention of a tool marker is no call",
        ("qwen3.5", None, None),
        &["use <tool_call> now", "</think>b"],
        (Some("use <tool_call> now"), Some("b")),
    ),
    (
        "an opener that the prompt has already goes once",
        ("deepseek-r1", None, None),
        &["<think>\na<think>b", "</think>c"],
        (Some("a<think>b"), Some("c")),
    ),
    (
        "no tail and thinking off",
        ("deepseek-r1", None, Some(false)),
        &["\nAnswer"],
        (None, Some("Answer")),
    ),
    (
        "a block that should not be is split all the same",
        ("qwen3", Some("<think>\n\n</think>\n\n"), Some(false)),
        &["<think>a</think>\nb"],
        (Some("a"), Some("b")),
    ),
    (
        "wrappers go",
        ("hunyuan-a13b", None, None),
        &["<think>\na\n</think>\n<answer>\nb\n\nc\n</answer>"],
        (Some("a"), Some("b\n\nc")),
    ),
    (
        "wrappers go",
        ("cohere_command3", None, None),
        &["a<|END_THINKING|><|START_TEXT|>b<|END_TEXT|>"],
        (Some("a"), Some("b")),
    ),
    (
        "wrappers go",
        ("kimi-k3", None, None),
        &[
            "<|open|>think<|sep|>a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>",
        ],
        (Some("a"), Some("b")),
    ),
    (
        "the head of a message was in the prompt",
        (
            "gpt-oss",
            Some("<|start|>assistant<|channel|>final<|message|>"),
            None,
        ),
        &["b", "<|return|>"],
        (None, Some("b")),
    ),
    (
        "a recipient may stand before the channel",
        ("gpt-oss", None, None),
        &[" to=functions.a<|channel|>commentary<|message|>{}<|call|>"],
        (
            None,
            Some(" to=functions.a<|channel|>commentary<|message|>{}<|call|>"),
        ),
    ),
    (
        "text without channels is an answer",
        ("gpt-oss", None, None),
        &["plain to read"],
        (None, Some("plain to read")),
    ),
];
