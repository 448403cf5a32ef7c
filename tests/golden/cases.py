"""What the fixtures are made of: texts to tokenise, conversations to render, questions to answer."""

TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n \n", "\t", "\r\n", "a", " a", "  a", "a ", "Hello, world!", " Hello", "Hello  world", "Hello   world ",
    "I'm you're we've they'll he'd it's", "I'M YOU'RE WE'VE", "2024", "3.14159", "1,234,567.89", "x1y22z333", " 42", "0x1F600", "12 345 6789 0",
    "naïve café", "cafe\u0301", "Ünïcödé", "日本語のテキスト", "안녕하세요 세계", "Привет, мир", "مرحبا بالعالم", "नमस्ते दुनिया", "🙂", "👩‍👩‍👧‍👦", "🇨🇭 flag", "e\u0301\u0301",
    "zero\u200bwidth", "non\u00a0breaking", "ideographic\u3000space", "\u0085next line", "tab\tin\tbetween", "line one\nline two\n\nline four\n",
    "trailing newline\n", "\n leading", "    four spaces of indent\n        eight\n", "def f(x):\n    return x**2  # square\n", "if (a != b) { c++; }",
    "<html><body>&amp;</body></html>", "https://example.com/path?query=1&other=two#frag", "user@example.com", "C:\\Users\\name", "$100 + 20% = ?",
    "<|im_start|>", "<|im_end|>\n<|im_start|>user\nhi<|im_end|>", "a<|im_start|>b", " <|im_end|> ", "<|im_start", "<|endoftext|><|endoftext|>",
    "<think>\nhm\n</think>\n\nyes", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "<|im_start|><|im_end|><|im_start|>", "<<|im_end|>>",
    "\u0000nul", "\u0001\u0002\u001f\u007f", "\u00ad soft hyphen", "\ufeffbom", "\ufffd replacement", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    " " * 40 + "x", "\n" * 20, "supercalifragilisticexpialidocious", "ﬁ ligature", "½ ⅓ ²", "١٢٣", "Ⅳ", "a\u0308o\u0308u\u0308",
    "The quick brown fox jumps over the lazy dog. " * 3,
]

CALCULATOR = {"type": "function", "function": {"name": "calculator", "description": "Computes <b>an</b> expression, \"exactly\" & 'fast'.",
              "parameters": {"type": "object", "properties": {"expression": {"type": "string", "description": "e.g. 2*3 — größer"}},
                             "required": ["expression"]}}}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string", "enum": ["Zürich", "São Paulo"]}, "days": {"type": "integer", "minimum": 1, "default": 1.5}}}}}


def user(text):
    return {"role": "user", "content": text}


def system(text):
    return {"role": "system", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, **more):
    return assistant(more.pop("content", ""), tool_calls=[{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}], **more)


TOOL_TURNS = [user("What is 2+3?"), call("calculator", {"expression": "2+3", "deep": {"list": [1, 2.5, None, True], "text": "a\"b<c>é"}}),
              {"role": "tool", "tool_call_id": "c1", "content": "5"}]

# (name, messages, keywords); each is rendered by every template with and without a generation prompt.
CONVERSATIONS = [
    ("one_question", [user("What is 47*36?")], {}),
    ("system_first", [system("Answer briefly."), user("Who are you?")], {}),
    ("white_space", [user("  two leading, two trailing \n\n ")], {}),
    ("unicode", [user("Grüße 🙂 “quoted” <tag> & 'more'")], {}),
    ("three_turns", [user("Hi"), assistant("Hello!"), user("Bye"), assistant("See you."), user("Wait")], {}),
    ("ends_with_assistant", [user("Hi"), assistant("Hello!")], {}),
    ("thinking_on", [user("What is 47*36?")], {"enable_thinking": True}),
    ("thinking_off", [user("What is 47*36?")], {"enable_thinking": False}),
    ("past_thinking_in_text", [user("1+1?"), assistant("<think>\nsum\n</think>\n\n2"), user("and 2+2?")], {}),
    ("past_thinking_in_field", [user("1+1?"), assistant("2", reasoning_content="sum"), user("and 2+2?")], {}),
    ("last_thinking_kept", [user("1+1?"), assistant("2", reasoning_content="\nsum\n")], {}),
    ("tools_offered", [user("What is 2+3?")], {"tools": [CALCULATOR, WEATHER]}),
    ("tools_and_system", [system("Be exact."), user("What is 2+3?")], {"tools": [CALCULATOR]}),
    ("tool_reply", TOOL_TURNS, {"tools": [CALCULATOR]}),
    ("tool_reply_thought", [TOOL_TURNS[0], {**TOOL_TURNS[1], "reasoning_content": "use the tool"}, TOOL_TURNS[2]], {"tools": [CALCULATOR]}),
    ("two_tool_replies", [*TOOL_TURNS, {"role": "tool", "tool_call_id": "c2", "content": "6"}, assistant("Five, or six."), user("Sure?")],
     {"tools": [CALCULATOR], "enable_thinking": False}),
    ("no_messages_but_system", [system("Only rules.")], {}),
]

QUESTIONS = [
    "What is the capital of France?", "Name three primary colors.", "Write a haiku about the sea.", "What is 2+2?", "Who wrote Hamlet?",
    "Explain gravity to a child.", "List five animals that live in water.", "Translate 'good morning' into Spanish.", "What is the boiling point of water?",
    "Give me a recipe for pancakes.", "What is photosynthesis?", "Why is the sky blue?", "Tell me a joke.", "What are the planets of the solar system?",
    "How do I learn to play the guitar?", "Summarize the story of Romeo and Juliet.", "What is a prime number?", "Write a short poem about winter.",
    "What is the largest ocean?", "How many days are in a leap year?", "What does a doctor do?", "What is machine learning?", "Describe a sunset.",
    "What is the opposite of hot?", "Write a Python function that adds two numbers.", "What is the speed of light?", "How do bees make honey?",
    "What is democracy?", "Give me tips for better sleep.", "What is the tallest mountain in the world?", "Define the word courage.",
    "How do I boil an egg?", "What causes rain?", "Name a famous painter.", "What is the currency of Japan?", "Why do cats purr?",
    "What is a haiku?", "How does a car engine work?", "What is the meaning of life?", "Who was Albert Einstein?",
]

SUMS = [
    "What is 47*36?", "What is 58*23?", "Compute 31*74.", "How much is 7*8?", "What is 6*9?", "What is 345+678?", "Compute 912-457.",
    "Calculate 1234+4321.", "What is 12*4?", "What is 9*9?", "Who are you?", "What is your name?", "Hello!", "Hi there", "What is the capital of Italy?",
    "What is the capital of Japan?", "What is the capital of Norway?", "What is 25*17?", "What is 803-268?", "Please work out 88*45.", "What is 64+97?",
    "Sort these numbers: 42 7 19 3.", "Reverse the word planet.", "What is 5*7?", "What is 99+1?", "Compute 71*29.", "What is 3*4 + 5*6?",
    "What is the capital of Peru?", "Is \"I love this film\" positive or negative?", "What is 250-75?",
    "Ana is a baker. Ben is a pilot. What does Ben do?", "The key is in the attic. The coin is in the barn. Where is the key?",
    "Write a poem about the sea.", "Explain history.", "Which is bigger, 481 or 418?", "What is 123*45?", "How many r are in strawberry?",
    "Repeat: blue cat lamp", "What is (17 + 6) * 4?", "If today is Monday, what day is it in 10 days?",
]
