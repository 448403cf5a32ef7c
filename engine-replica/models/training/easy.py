"""Easy tasks: small talk, copying, extraction to JSON, classification, refusals. The scratchpad is a word or two."""
import json

from draw import ask, easy, nd, word
from words import CAPITALS, CITIES, COLORS, ITEMS, JOBS, NAMES, NEG, POS, THINGS


def t_greet(r, lv):
    k = r.randrange(5)
    if k == 0:
        return easy(r.choice(["Hello", "Hello!", "Hi", "Hi!", "Hi there", "Hey", "Good morning", "Good evening!", "hello", "hi"]), "A greeting.", "Hello! How can I help you?")
    if k == 1:
        return easy(r.choice(["How are you?", "How are you today?", "How do you do?", "Are you well?"]), "Small talk.", "I am fine, thank you. How can I help you?")
    if k == 2:
        return easy(r.choice(["Thanks!", "Thank you.", "Thanks a lot", "Thank you very much!", "thanks"]), "Thanks.", "You are welcome!")
    if k == 3:
        return easy(r.choice(["Bye", "Goodbye!", "See you later.", "Good night", "bye"]), "A farewell.", "Goodbye!")
    return easy(r.choice(["Say hello.", "Say hi", "Please greet me."]), "A greeting.", "Hello!")


def t_who(r, lv):
    if r.random() < 0.6:
        return easy(r.choice(["Who are you?", "What are you?", "What is your name?", "Tell me about yourself.", "Are you a person?", "Are you an AI?", "who are you", "Introduce yourself."]),
                    "About me.", "I am Abacus, a tiny demonstration model.")
    return easy(r.choice(["What can you do?", "Help", "How can you help me?", "What are you good at?", "help me"]),
                "About me.", "I can do sums, count letters, sort numbers and look up facts you give me.")


def t_copy(r, lv):
    k = r.randint(3, 12) if lv < 1.5 and r.random() < 0.6 else r.randint(1, 5)
    s = " ".join(r.choice([word(r), r.choice(ITEMS), r.choice(COLORS), r.choice(NAMES), str(nd(r, 1, 4))]) for _ in range(k))
    q = ask(r, s, ["Repeat: {}", 'Repeat after me: "{}"', "Copy this text: {}", 'Say "{}"', "Echo: {}"])
    return easy(q, "Copy.", s, f"copy {s}")


def t_json(r, lv):
    n, age, c, j = r.choice(NAMES), r.randint(5, 95), r.choice(CITIES), r.choice(JOBS)
    s = r.choice([f"{n} is {age} years old and lives in {c}.", f"{n}, a {j} from {c}, is {age}.", f"In {c} lives {n}, who is {age} and works as a {j}."])
    f = [("name", n), ("age", age), ("city", c)]
    f = r.sample(f, r.randint(1, 3))
    ks = [x for x, _ in f]
    ks = ks[0] if len(ks) == 1 else ", ".join(ks[:-1]) + " and " + ks[-1]
    q = ask(r, None, [f"Extract the {ks} as JSON: {s}", f"{s} Give the {ks} as JSON.", f"Return {ks} in JSON. {s}"])
    return easy(q, "Find the fields.", json.dumps(dict(f)), f"json {n} {age}")


def t_sent(r, lv):
    p = r.random() < 0.5
    w, t = r.choice(POS if p else NEG), r.choice(THINGS)
    s = r.choice([f"The {t} was {w}.", f"What a {w} {t}!", f"A {w} {t}.", f"I found the {t} {w}.", f"This {t} is really {w}."])
    q = ask(r, None, [f'Is this positive? "{s}" Answer yes or no.', f"Is this review positive, yes or no? {s}", f"Positive review? {s}"])
    return easy(q, f"{w}.", "yes" if p else "no", f"sent {s}")


def t_name(r, lv):
    n = r.choice(NAMES)
    q = r.choice(["What is my name?", "Do you know my name?", "Who am I?"])
    u = r.choice([f"My name is {n}.", f"I am {n}.", f"Hi, I am {n}.", f"Hello, my name is {n}."])
    if r.random() < 0.3:
        return easy(u, "A greeting.", f"Hello, {n}!")
    return easy(q, "Look it up.", f"Your name is {n}.", history=[(u, f"Hello, {n}!")], more=r.choice([0, 0, 1, 2]))


def t_cap(r, lv):
    c = r.choice(list(CAPITALS))
    return easy(ask(r, c, ["What is the capital of {}?", "Capital of {}?", "Which city is the capital of {}?", "Name the capital of {}."]), "A capital.", CAPITALS[c])


def t_refuse(r, lv):
    x = r.choice(["love", "the sea", "history", "money", "war", "music", "cars", "space", "politics", "my life", "health", "the future", "art", "computers"])
    q = ask(r, x, ["Write a poem about {}.", "Tell me a story about {}.", "Explain {}.", "What do you think about {}?", "Write an essay about {}.", "Give me advice about {}.",
                   "Write a program about {}.", "Why is {} important?", "Tell me a joke about {}.", "Summarize the news about {}.", "Translate {} into French."])
    return easy(q, "Out of scope.", "Sorry, I cannot do that. I am a tiny demonstration model.")
