// What needs no module: the client against workers that do little, the values that may be passed, and where models are read.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { Oriel, OrielError } from '../src/node.js';

const require = createRequire(import.meta.url);
const { whole, single, wholeText, jsonOf, decode, bytesFrom } = require('../src/engine/values.js');
const { Structs } = require('../src/engine/structs.js');
const { Engine, bytesOf } = require('../src/engine/engine.js');
const { hostOf } = require('../src/engine/host.js');

const folder = mkdtempSync(join(tmpdir(), 'oriel-'));
after(() => rmSync(folder, { recursive: true }));

/** Answers everything with its name. A reply ends when it is told to stop; a model named 'exit' ends the worker. */
const worker = new URL(`data:text/javascript,${encodeURIComponent(`
import { parentPort as port } from 'node:worker_threads';
let name;
port.on('message', ({ id, call, args }) => {
  if (call === 'start') name = args.name;
  if (call === 'load') {
    port.postMessage({ event: 'log', level: 1, text: 'a warning' });
    port.postMessage({ event: 'progress', what: 'load', done: 1, total: 2 });
    if (name === 'exit') process.exit(3);
  }
  const answer = () => {
    const over = call !== 'reply' || Atomics.load(args.stop.word, 0);
    if (over) port.postMessage({ id, value: call === 'reply' ? { stopReason: 'cancelled' } : { call } });
    else setTimeout(answer, 5);
  };
  answer();
});`)}`);
const load = (options) => Oriel.load('model', { worker, threads: 1, ...options });
const endless = { timeout: 20000 };

test('each_cancel_ends_its_own_reply', endless, async () => {
  const model = await load();
  const [a, b] = [model.session(), model.session()];
  const over = b.reply('Hello!');
  over.cancel();
  await over.result;
  const [first, second] = [a.reply('Hello!'), b.reply('Hello!')];
  first.cancel();  // at once
  over.cancel();   // does nothing
  assert.equal((await first.result).stopReason, 'cancelled');
  assert.equal(await Promise.race([second.result, a.stats().then(() => 'goes on')]), 'goes on');
  second.cancel();
  await second.result;
  await model.dispose();
});

test('one_signal_ends_all_its_replies', endless, async () => {
  const model = await load();
  const stop = new AbortController();
  const replies = [1, 2].map(() => model.session().reply('Hello!', { signal: stop.signal }));
  await model.session().stats();
  stop.abort();
  for (const reply of replies) await assert.rejects(reply.result, { name: 'AbortError' });
  await model.dispose();
});

test('dispose_ends_the_replies_of_a_session', endless, async () => {
  const model = await load();
  const chat = model.session();
  const reply = chat.reply('Hello!');
  await chat.stats();
  await chat.dispose();
  assert.equal((await reply.result).stopReason, 'cancelled');
  await assert.rejects(chat.reply('Hello!').result, { status: 'state' });
  await model.dispose();
});

test('a_worker_that_ends_is_said_to_all_who_wait', endless, async () => {
  await assert.rejects(Oriel.load('exit', { worker, threads: 1 }), { status: 'internal', message: /ended with code 3/ });
});

test('what_a_log_throws_is_dropped_and_what_progress_throws_ends_the_load', endless, async () => {
  const thrown = () => {
    throw new Error('mine');
  };
  await (await load({ log: thrown })).dispose();
  await assert.rejects(load({ progress: thrown }), { message: 'mine' });
});

test('what_cannot_be_copied_is_refused_and_keeps_no_program_alive', endless, () => {
  const program = `
import { Oriel } from ${JSON.stringify(new URL('../src/node.js', import.meta.url).href)};
const model = await Oriel.load('model', { worker: new URL(${JSON.stringify(worker.href)}), threads: 1 });
const said = (error) => console.log(error.status);
await model.session().reply('Hello!', { onToken() {} }).result.catch(said);
await model.session({ tools: [() => 1] }).stats().catch(said);
await model.session().add(new Proxy({}, {})).catch(said);`;
  const made = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: 15000 });
  assert.equal(made.status, 0, made.stderr);
  assert.equal(made.stdout, 'argument\nargument\nargument\n');
});

test('a_module_that_trapped_is_not_called_again', endless, async () => {
  cpSync(fileURLToPath(new URL('../src/engine', import.meta.url)), join(folder, 'src/engine'), { recursive: true });
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'dist/oriel.wasm'), Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  writeFileSync(join(folder, 'dist/oriel.js'), `let calls = 0;
module.exports = async () => ({ _web_structs() { throw new WebAssembly.RuntimeError('trap ' + ++calls); } });`);
  const planner = await Oriel.planner(new Uint8Array(8), { worker: pathToFileURL(join(folder, 'src/engine/node.js')) });
  for (let i = 0; i < 2; ++i) await assert.rejects(planner.plan(), { status: 'internal', message: /trap 1.*load the model again/ });
  planner.dispose();
});

test('addresses_above_2_gib_are_unsigned', (t) => {
  let memory;
  try {
    memory = new WebAssembly.Memory({ initial: 40000 });  // its pages are not touched, but for two
  } catch (error) {
    return t.skip(`no memory of 2.4 GiB: ${error.message}`);
  }
  const bytes = new Uint8Array(memory.buffer);
  let free = 0x80000000;
  const freed = [];
  const module = {
    _web_structs: () => 0x80000000 | 0, _web_struct_count: () => 0, _web_on_log: () => 0x80000010 | 0, _oriel_version: () => 0x80000200 | 0,
    _malloc: () => (free += 4096) | 0, _free: (at) => freed.push(at),
  };
  const engine = new Engine(module, memory);
  engine.structs.types.oriel_view = { bytes: 8, fields: [] };
  new TextEncoder().encodeInto('0.1.0', bytes.subarray(0x80000200));
  assert.equal(engine.structs.text(engine.m._oriel_version()), '0.1.0');
  assert.equal(engine.m._web_on_log(), 0x80000010);
  const saved = engine.filled(1, (at, capacity, needed) => {
    if (at) bytes.fill(7, at, at + capacity);
    else engine.structs.view().setUint32(needed, 3, true);
    return 0;
  });
  assert.deepEqual(saved, Uint8Array.of(7, 7, 7));
  assert.deepEqual(freed, [0x80001000, 0x80002000]);
  assert.throws(() => engine.structs.allocate(2 ** 32 + 8), { status: 6 });  // and not 8 bytes

  const heard = [];
  engine.hooks = { log: (...given) => heard.push(given), token: (at) => heard.push(at), part: (at) => heard.push(at), logits: (...given) => heard.push(given) };
  const host = hostOf(memory, () => engine);
  host.source = { size: 5e9, read: (offset, into) => heard.push([offset, into.byteOffset, into.byteLength]) };
  host.name = '0.1.0';
  const file = host.open(0x80000200 | 0);
  assert.equal(host.size(file), 5e9);
  assert.equal(host.read(file, 4.5e9, 0x80000300 | 0, 16), 0);
  host.log(1, 0x80000200 | 0);
  host.token(0x80000400 | 0);
  host.part(0x80000500 | 0);
  host.logits(2 ** 33, 0x80000600 | 0, 10);
  assert.deepEqual(heard, [[4.5e9, 0x80000300, 16], [1, '0.1.0'], 0x80000400, 0x80000500, [2 ** 33, 0x80000600, 10]]);
});

test('what_cannot_be_read_is_io_and_what_is_no_model_an_argument', async () => {
  for (const source of ['/no/such/model.gguf', new URL('file:///no/such/model.gguf'), 'http://127.0.0.1:9/x.gguf']) {
    await assert.rejects(Oriel.planner(source), (error) => error instanceof OrielError && error.status === 'io' && /: check/.test(error.message));
  }
  for (const source of [42, null, undefined, {}, []]) await assert.rejects(Oriel.planner(source), { status: 'argument' }, `${source}`);
});

const refused = (body) => assert.throws(body, { status: 1, message: /: give|: cut/ });

test('numbers_are_whole_and_in_range', () => {
  assert.equal(whole('n', 2 ** 53, 0, 2 ** 53), 2 ** 53);
  for (const value of [-1, 0.5, NaN, Infinity, 1e300, '5', null, undefined, {}, true]) refused(() => whole('n', value, 0, 2 ** 53));
  const view = new DataView(new ArrayBuffer(8));
  const put = (kind, value) => Structs.prototype.put(view, 0, kind, value, 'field');
  put('u', 0xffffffff);
  assert.equal(view.getUint32(0, true), 0xffffffff);
  put('i', -(2 ** 31));
  assert.equal(view.getInt32(0, true), -(2 ** 31));
  put('q', 2 ** 63);
  assert.equal(view.getBigUint64(0, true), 2n ** 63n);
  put('f', 0.25);
  assert.equal(view.getFloat32(0, true), 0.25);
  for (const [kind, value] of [['u', 2 ** 32], ['u', 2 ** 32 + 3], ['u', 0.9], ['i', 2 ** 31], ['q', 0.5], ['q', 2 ** 64], ['q', -1]]) refused(() => put(kind, value));
  for (const value of [NaN, 1e300, 1e-60, '0.5', {}]) refused(() => single('f', value));
});

test('sizes_are_bytes', () => {
  for (const [size, bytes] of [[0, 0], [262144, 262144], [1e9 / 3, 333333333], ['300MB', 3e8], ['1.5 kiB', 1536]]) assert.equal(bytesOf(size), bytes);
  for (const size of [0.5, '0.5', -1, NaN, Infinity, 1e300, 'much', {}]) assert.throws(() => bytesOf(size), { status: 1 });
});

test('texts_are_whole_and_come_as_they_were', () => {
  for (const text of ['', '\ufeffabc', '\0', '😀', 'ü']) {
    assert.equal(wholeText(text), text);
    assert.equal(decode(new TextEncoder().encode(text)), text);
  }
  for (const text of ['\ud83d', 'a\ude00b', '😀\ud83d', 42, undefined, {}]) refused(() => wholeText(text));
  assert.equal(jsonOf([{ role: 'user', content: '😀' }]), '[{"role":"user","content":"😀"}]');
  const circle = {};
  circle.circle = circle;
  for (const value of [{ content: ['\ud83d'] }, { '\ud83d': 1 }, circle, 1n]) refused(() => jsonOf(value));
});

test('bytes_are_a_buffer_or_a_view', () => {
  const buffer = Uint8Array.of(1, 2, 3, 4).buffer;
  assert.deepEqual(bytesFrom(buffer), Uint8Array.of(1, 2, 3, 4));
  assert.deepEqual(bytesFrom(new DataView(buffer, 1, 2)), Uint8Array.of(2, 3));
  for (const value of ['text', [1, 2], {}, null, 5]) refused(() => bytesFrom(value));
});
