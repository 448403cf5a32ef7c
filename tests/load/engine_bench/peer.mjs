// Measures llama.cpp (npm node-llama-cpp, prebuilt) on one GGUF file. One run of every measure: one JSON
// object a line on stdout, in the form that engine_bench.py reads:
//
//   {"measure": "prefill", "prompt_tokens": 512, "value": 174.2}               tokens per second
//   {"measure": "decode", "prompt_tokens": 512, "streams": 4, "value": 64.1}   tokens per second, all streams together
//   {"measure": "ttft_cold" | "ttft_warm", "prompt_tokens": 2048, "value": 630}  milliseconds
//
//   node peer.mjs --modules DIR --model FILE [--prompt-tokens 512,2048] [--streams 1,4] [--decode-tokens 64] [--threads 2]
//
// --modules is the folder whose node_modules holds node-llama-cpp: the package lives in the user's cache,
// outside this repository, and a bare import would not find it there.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    "modules": { type: "string" },
    "model": { type: "string" },
    "prompt-tokens": { type: "string", default: "512,2048" },
    "streams": { type: "string", default: "1,4" },
    "decode-tokens": { type: "string", default: "64" },
    "threads": { type: "string", default: "2" },
  },
});

/** A comma-separated list of whole numbers of at least 1, or an error that names the flag. */
function numbers(flag) {
  return options[flag].split(",").map((text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${flag}: \`${text}\` is not a whole number of at least 1`);
    return value;
  });
}

for (const flag of ["modules", "model"]) {
  if (options[flag] === undefined) throw new Error(`--${flag} is missing`);
}
const promptLengths = numbers("prompt-tokens");
const streamCounts = numbers("streams");
const [decodeTokens] = numbers("decode-tokens");
const [threads] = numbers("threads");

const entry = createRequire(join(options.modules, "package.json")).resolve("node-llama-cpp");
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(entry).href);

const llama = await getLlama({ build: "never", gpu: false, logLevel: LlamaLogLevel.error, maxThreads: threads });
const model = await llama.loadModel({ modelPath: options.model });

const row = (measure, fields, value) => console.log(JSON.stringify({ measure, ...fields, value: Math.round(value * 100) / 100 }));
const seconds = () => performance.now() / 1000;

/** `length` token ids of plain prose that starts differently for each `salt`, so that streams share nothing. */
function prompt(length, salt) {
  const words = ["river", "stone", "engine", "garden", "copper", "window", "letter", "morning", "harbour", "signal"];
  let text = `Story ${salt}.`;
  let state = salt + 1;
  let tokens = [];
  while (tokens.length < length) {
    for (let i = 0; i < length; i += 1) {
      state = (state * 48271) % 2147483647;
      text += ` ${words[state % words.length]}`;
    }
    tokens = model.tokenize(text);
  }
  return tokens.slice(0, length);
}

/** Seconds until the first token that follows `tokens`, of which the sequence may hold a prefix already. */
async function firstToken(sequence, tokens) {
  const start = seconds();
  await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
  for await (const _ of sequence.evaluate(tokens.slice(sequence.nextTokenIndex), { temperature: 0, yieldEogToken: true })) {
    return seconds() - start;
  }
  throw new Error("the model gave no token");
}

/** Runs one sequence for `count` tokens after its prompt; the first token marks the end of its prefill. */
async function decode(sequence, tokens, count, onFirst) {
  let seen = 0;
  for await (const _ of sequence.evaluate(tokens, { temperature: 0, yieldEogToken: true })) {
    seen += 1;
    // Nobody starts the timed part before every stream has its prompt behind it.
    if (seen === 1) await onFirst();
    if (seen > count) return;
  }
}

/** All arrive, then all go on; `onOpen` runs once, when the last has arrived. */
function barrier(parties, onOpen) {
  let waiting = parties;
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return () => {
    waiting -= 1;
    if (waiting === 0) {
      onOpen();
      open();
    }
    return opened;
  };
}

async function measurePrompts() {
  const context = await model.createContext({ contextSize: Math.max(...promptLengths) + 64, sequences: 1, threads });
  const sequence = context.getSequence();
  await sequence.evaluateWithoutGeneratingNewTokens(prompt(64, 1));
  for (const length of promptLengths) {
    const tokens = prompt(length, 7);
    await sequence.clearHistory();
    const start = seconds();
    await sequence.evaluateWithoutGeneratingNewTokens(tokens);
    row("prefill", { prompt_tokens: length }, length / (seconds() - start));
    await sequence.clearHistory();
    row("ttft_cold", { prompt_tokens: length }, 1000 * await firstToken(sequence, tokens));
    row("ttft_warm", { prompt_tokens: length }, 1000 * await firstToken(sequence, tokens));
  }
  await context.dispose();
}

async function measureStreams(length, streams) {
  const context = await model.createContext({ contextSize: length + decodeTokens + 64, sequences: streams, threads });
  const sequences = Array.from({ length: streams }, () => context.getSequence());
  let start = 0;
  const arrive = barrier(streams, () => (start = seconds()));
  await Promise.all(sequences.map((sequence, i) => decode(sequence, prompt(length, i), decodeTokens, arrive)));
  row("decode", { prompt_tokens: length, streams }, streams * decodeTokens / (seconds() - start));
  await context.dispose();
}

await measurePrompts();
for (const length of promptLengths) {
  for (const streams of streamCounts) await measureStreams(length, streams);
}
await llama.dispose();
