// Token ids by llama.cpp, as a second opinion on the vocabulary that a GGUF file carries.
// Reads [[text, special tokens count], …] on stdin. Run where `npm install node-llama-cpp` was.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const require = createRequire(pathToFileURL(process.cwd() + "/"));
const {getLlama} = await import(pathToFileURL(require.resolve("node-llama-cpp")));
const llama = await getLlama({gpu: false, logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2], vocabOnly: true});
const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map(([text, special]) => Array.from(model.tokenize(text, special)))));
process.exit(0);
