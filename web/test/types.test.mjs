// What index.d.ts says is what index.js has, and a program that uses it compiles.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { native, noModule, noNative } from './native.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const compiler = join(root, 'build/web/node_modules/typescript/bin/tsc');

test('a_typed_program_compiles', { skip: noModule || (existsSync(compiler) ? false : 'typescript is not in build/web: scripts/web.sh installs it') }, () => {
  const program = join(root, 'build/web/program.mts');
  writeFileSync(program, `import { Oriel, OrielError, type Plan } from '../../web/src/index.js';
const model = await Oriel.load(new Uint8Array(1), { memory: '40MB', kv: 'k8v4', threads: 2 });
const plan: Plan = model.plan;
const chat = model.session({ system: 'Be kind.', tools: [] });
const stop = new AbortController();
const reply = chat.reply('Hello', { signal: stop.signal, schema: { type: 'object' }, maxTokens: plan.windowTokens });
for await (const piece of reply) piece.toUpperCase();
for await (const event of reply.events()) if (event.type === 'reading') event.done.toFixed();
const result = await reply.result;
result.toolCalls[0]?.name.length;
const kept: Uint8Array = await chat.save();
(await chat.restore(kept.buffer)).how === (await chat.restore(kept)).how;
(await chat.describe()).turns.length + ((await chat.stats()).wasmBytes ?? 0) + (await chat.embed('x')).length;
await chat.fork().goBack({ turns: 1 }, { readAgain: true });
await chat.reply('x', { stop: ['a'], topK: 5, toolChoice: 'none' }).result;
await Oriel.plan('x', { device: 'cpu', activationBits: 8, windowShares: [0, 128], transcript: '64KB' });
try { await model.dispose(); } catch (error) { if (error instanceof OrielError) error.status.trim(); }
// @ts-expect-error: there is no such format
await Oriel.plan('x', { kv: 'k3v3' });
// @ts-expect-error: there is no such option
await Oriel.plan('x', { contextSize: 5 });
`);
  const made = spawnSync(process.execPath, [compiler, '--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2022,dom', program], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stdout);
});

test('the_types_have_the_options_of_the_program', { skip: noModule || noNative }, () => {
  const typed = readFileSync(join(root, 'web/dist/options.d.ts'), 'utf8');
  const namesOf = (scope) => [...new RegExp(`interface ${scope} \\{([^]*?)\\n\\}`).exec(typed)[1].matchAll(/^  (\w+)\?:/gm)].map((found) => found[1]);
  const { options } = native(['options']);
  for (const [scope, name] of [['load', 'LoadOptions'], ['session', 'SessionOptions'], ['reply', 'ReplyOptions']]) {
    const listed = options.filter((option) => option.scope === scope).map((option) => option.name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()));
    assert.deepEqual(namesOf(name), listed);
  }
});

test('every_source_parses', () => {
  for (const folder of ['web', 'web/src', 'web/src/engine', 'web/page', 'web/test']) {
    for (const name of readdirSync(join(root, folder)).filter((file) => /\.m?js$/.test(file) && file !== 'host_library.js')) {
      const file = join(root, folder, name);
      const made = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
      assert.equal(made.status, 0, made.stderr);
    }
  }
});

test('what_is_typed_is_exported', async () => {
  for (const entry of ['index', 'node']) {
    const exported = await import(`../src/${entry}.js`);
    assert.deepEqual(Object.keys(exported).sort(), ['Oriel', 'OrielError', 'statusNames']);
  }
});

const noRequire = process.features.require_module ? false : `Node ${process.version} cannot require modules`;
test('require_gives_the_package', { skip: noRequire }, () => {
  const program = "const { Oriel, OrielError } = require('oriel'); console.log(typeof Oriel.load, new OrielError('', 2).status)";
  const made = spawnSync(process.execPath, ['-e', program], { cwd: join(root, 'web'), encoding: 'utf8' });
  assert.equal(made.stdout, 'function io\n', made.stderr);
});
