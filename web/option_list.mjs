// The option list of a built module, as `oriel options --json` prints it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const { Engine, memoryForPlans } = require('./src/engine/engine.js');

export async function optionList(dist = fileURLToPath(new URL('dist', import.meta.url))) {
  const code = await WebAssembly.compile(readFileSync(join(dist, 'oriel.wasm')));
  const factory = { create: require(join(dist, 'oriel.js')) };
  return (await Engine.start({ factory, code, threads: 0, ...memoryForPlans })).optionList();
}
