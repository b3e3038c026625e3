// Compares the speed of the addon and of WebAssembly with the program, in turns: node bench.mjs MODEL [--prefill N]
// [--decode N] [--repeat R] [--threads N] [--engine native | wasm].
// Prints the medians, and the median of the shares of each turn. Short replies are slower in Node: its compiler works on the
// first few hundred tokens.
import { spawnSync } from 'node:child_process';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Oriel } from './src/node.js';

const value = (name, fallback) => (process.argv.includes(name) ? Number(process.argv[process.argv.indexOf(name) + 1]) : fallback);
const file = process.argv[2];
const [prefill, decode, repeat, threads] = [value('--prefill', 128), value('--decode', 512), value('--repeat', 7), value('--threads', 1)];
const engines = process.argv.includes('--engine') ? [process.argv[process.argv.indexOf('--engine') + 1]] : ['native', 'wasm'];
const root = fileURLToPath(new URL('../', import.meta.url));

async function measure(load, source, options, prefillTokens, decodeTokens) {
  const model = await load(source, options);
  const chat = model.session();
  const ids = Array.from({ length: prefillTokens }, (_, i) => 100 + ((i * 37) % 1000));
  await chat.append(ids.slice(0, 16));
  await chat.generate({ greedy: true, ignoreStop: true, maxTokens: 8 }).result;
  await chat.reset();
  const begin = performance.now();
  await chat.append(ids);
  const read = performance.now();
  const { decodeTokensPerS } = await chat.generate({ greedy: true, ignoreStop: true, maxTokens: decodeTokens }).result;
  await model.dispose();
  return { prefill: (1000 * prefillTokens) / (read - begin), decode: decodeTokensPerS };
}

const options = { memory: '300MB', window: 512, kv: 'f16', threads, device: 'cpu' };
const told = { program: [], native: [], wasm: [] };
for (let i = 0; i < repeat; ++i) {
  const program = process.env.ORIEL_NATIVE || `${root}build/release/apps/oriel`;
  const args = ['bench', file, '--threads', `${threads}`, '--device', 'cpu', '--memory', '300MB', '--window', '512', '--kv', 'f16',
    '--prefill', `${prefill}`, '--decode', `${decode}`, '--repeat', '1', '--json'];
  const out = JSON.parse(spawnSync(program, args, { encoding: 'utf8' }).stdout);
  told.program.push({ prefill: out.prefill_tokens_per_s, decode: out.decode_tokens_per_s });
  for (const engine of engines) told[engine].push(await measure(Oriel.load, file, { ...options, engine }, prefill, decode));
}
const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];
for (const kind of ['prefill', 'decode']) {
  const speed = (who) => median(told[who].map((one) => one[kind])).toFixed(1);
  const share = (who) => median(told[who].map((one, i) => one[kind] / told.program[i][kind])).toFixed(2);
  console.log(`${basename(file)} node ${threads} thread(s) ${kind}: program ${speed('program')} tokens/s, ${engines.map((who) => `${who} ${speed(who)}, share ${share(who)}`).join('; ')}`);
}
