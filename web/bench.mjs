// Compares the speed with the native program, alternately: node bench.mjs MODEL [--prefill N]
// [--decode N] [--repeat R] [--threads N].
// Prints the best of each, because other load on the machine only makes runs slower.
import { spawnSync } from 'node:child_process';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Oriel } from './src/node.js';

const value = (name, fallback) => (process.argv.includes(name) ? Number(process.argv[process.argv.indexOf(name) + 1]) : fallback);
const file = process.argv[2];
const [prefill, decode, repeat, threads] = [value('--prefill', 128), value('--decode', 32), value('--repeat', 3), value('--threads', 1)];
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

const options = { memory: '300MB', window: 512, kv: 'f16', threads };
const once = () => measure(Oriel.load, file, options, prefill, decode);

const best = { native: { prefill: 0, decode: 0 }, wasm: { prefill: 0, decode: 0 } };
const note = (who, told) => {
  for (const kind of ['prefill', 'decode']) best[who][kind] = Math.max(best[who][kind], told[kind]);
};
for (let i = 0; i < repeat; ++i) {
  const program = process.env.ORIEL_NATIVE || `${root}build/release/apps/oriel`;
  const args = ['bench', file, '--threads', `${threads}`, '--device', 'cpu', '--memory', '300MB', '--window', '512', '--kv', 'f16',
    '--prefill', `${prefill}`, '--decode', `${decode}`, '--repeat', '2', '--json'];
  const out = JSON.parse(spawnSync(program, args, { encoding: 'utf8' }).stdout);
  note('native', { prefill: out.prefill_tokens_per_s, decode: out.decode_tokens_per_s });
  note('wasm', await once());
}
for (const kind of ['prefill', 'decode']) {
  console.log(`${basename(file)} node ${threads} thread(s) ${kind}: native ${best.native[kind].toFixed(1)} tokens/s, wasm ${best.wasm[kind].toFixed(1)}, share ${(best.wasm[kind] / best.native[kind]).toFixed(2)}`);
}
