// Answers from the text files of a folder, with their sources: node search.mjs CHAT.gguf ENCODER.gguf INDEX FOLDER
//
// Every paragraph becomes a vector. The file INDEX keeps the vectors, so that only new paragraphs are encoded. A question
// on stdin finds the nearest paragraphs. The chat model answers in JSON: a text, and the numbers of the paragraphs that it used.
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Oriel } from 'oriel';

const schema = {
  type: 'object',
  properties: {
    answer: { type: 'string', maxLength: 600 },
    sources: { type: 'array', maxItems: 3, items: { type: 'integer', minimum: 1, maximum: 3 } },
  },
  required: ['answer', 'sources'],
  additionalProperties: false,
};

/** All paragraphs, which empty lines divide. The end of a very long one is left out. */
function readFolder(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.txt')).sort();
  return files.flatMap((name) => {
    const texts = readFileSync(join(folder, name), 'utf8').split('\n\n').map((text) => text.replace(/^\n+|\n+$/g, '')).filter(Boolean);
    return texts.map((text, i) => ({ place: `${name.replaceAll('\\', '/')}, paragraph ${i + 1}`, text: text.slice(0, 1500).replace(/[\ud800-\udbff]$/, '') }));
  });
}

/** FNV-1a. */
function keyOf(text) {
  let key = 14695981039346656037n;
  for (const byte of Buffer.from(text)) key = BigInt.asUintN(64, (key ^ BigInt(byte)) * 1099511628211n);
  return key;
}

/**
 * The index has the bytes of the encoder's file and the width of a vector, then a key and a vector for each paragraph.
 * An index of another encoder is not used.
 */
function readIndex(path, head, width) {
  const known = new Map();
  const data = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  if (!data.subarray(0, 16).equals(head)) return known;
  const row = 8 + 4 * width;
  for (let at = 16; at + row <= data.length; at += row) {
    known.set(data.readBigUInt64LE(at), new Float32Array(Uint8Array.from(data.subarray(at + 8, at + row)).buffer));
  }
  return known;
}

/** Sets the vector of each paragraph. Returns how many the index lacked. */
async function updateIndex(path, encoderPath, encoder, width, paragraphs) {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(BigInt(statSync(encoderPath).size));
  head.writeBigUInt64LE(BigInt(width), 8);
  const known = readIndex(path, head, width);
  const parts = [head];
  let added = 0;
  for (const one of paragraphs) {
    const key = Buffer.alloc(8);
    key.writeBigUInt64LE(keyOf(one.text));
    one.vector = known.get(key.readBigUInt64LE());
    if (!one.vector) {
      one.vector = await encoder.embed(one.text, { kind: 'document' });
      added += 1;
    }
    parts.push(key, Buffer.from(one.vector.buffer, one.vector.byteOffset, one.vector.byteLength));
  }
  writeFileSync(path, Buffer.concat(parts));
  return added;
}

/** The nearest paragraphs, best first. The vectors have length 1: their product is the cosine of the angle between them. */
function nearest(asked, paragraphs) {
  const score = ({ vector }) => vector.reduce((sum, value, i) => sum + value * asked[i], 0);
  return paragraphs.map((one) => ({ ...one, score: score(one) })).sort((a, b) => b.score - a.score).slice(0, 3);
}

/** Shows the answer as it grows, then the sources that it names. */
async function answer(model, question, found) {
  const sources = found.map(({ text }, i) => `\n[${i + 1}] ${text}\n`).join('');
  const chat = model.session();
  const reply = chat.reply(`Answer from these sources.\n${sources}\nQuestion: ${question}`, { schema, valueParts: true, maxTokens: 400 });
  const named = new Set();
  for await (const { type, text } of reply.events()) {
    if (type === 'string') process.stdout.write(text);
    if (type === 'literal') named.add(Number(text));
  }
  await chat.dispose();
  found.forEach(({ place }, i) => named.has(i + 1) && process.stdout.write(`\n  [${i + 1}] ${place}`));
  process.stdout.write('\n');
}

async function main([chatPath, encoderPath, index, folder]) {
  const paragraphs = readFolder(folder);
  if (paragraphs.length === 0) throw new Error(`${folder} has no .txt files with text: give another folder`);
  const encoderModel = await Oriel.load(encoderPath);
  const encoder = encoderModel.session();
  const { nEmbd } = await encoderModel.describe();
  const added = await updateIndex(index, encoderPath, encoder, nEmbd, paragraphs);
  const model = await Oriel.load(chatPath, { constraints: true });
  console.log(`${paragraphs.length} paragraphs, ${added} new. Ask, or press Ctrl-D.`);
  for await (const question of createInterface({ input: process.stdin })) {
    await answer(model, question, nearest(await encoder.embed(question, { kind: 'query' }), paragraphs));
  }
  await encoderModel.dispose();
  await model.dispose();
}

if (process.argv.length !== 6) {
  console.error('usage: node search.mjs CHAT.gguf ENCODER.gguf INDEX FOLDER');
  process.exitCode = 2;
} else {
  await main(process.argv.slice(2)).catch((error) => {
    console.error(`search: ${error.message}`);
    process.exitCode = 1;
  });
}
