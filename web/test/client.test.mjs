// Tests without the module: the client with simple workers, argument checks, and sources of models.
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
const { whole, wholeText, jsonOf, parse, settingsOf, flagsOf, decode, bytesFrom } = require('../src/engine/values.js');
const { Engine } = require('../src/engine/engine.js');
const { hostOf } = require('../src/engine/host.js');
const { gathered } = require('../src/engine/worker.js');

const folder = mkdtempSync(join(tmpdir(), 'oriel-'));
after(() => rmSync(folder, { recursive: true }));

/**
 * Answers everything with its name and arguments. A reply ends on a stop request, and fails if its message is
 * 'unread'. A model named 'exit' ends the worker.
 */
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
    const unread = over && call === 'reply' && args.messages.content === 'unread';
    if (unread) port.postMessage({ id, error: { status: 10, message: 'cancelled' } });
    else if (over) port.postMessage({ id, value: call === 'reply' ? { stopReason: 'cancelled' } : { call, args } });
    else setTimeout(answer, 5);
  };
  answer();
});`)}`);
const load = (options) => Oriel.load('model', { worker, threads: 1, ...options });
const endless = { timeout: 20000 };

test('quick_events_go_together_and_slow_ones_at_once', () => {
  let time = 0;
  let sent = [];
  const events = gathered((values) => sent.push(values), () => time);
  const after = (gap, ...values) => {
    const before = sent.length;
    time += gap;
    for (const value of values) events.emit(value);
    return sent.slice(before);
  };
  // A slow model: each event at once, also those that come together.
  for (let i = 0; i < 40; ++i) assert.deepEqual(after(100, i, 'a guess'), [[i], ['a guess']]);
  // A quick one: within 8 ms, in their order, and the first event after a gap at once.
  for (let i = 0; i < 40; ++i) after(1, i);
  events.flush();
  sent = [];
  for (let i = 0; i < 90; ++i) after(1, i);
  assert.equal(sent.length, 10);
  assert.deepEqual(sent.flat(), [...Array(90).keys()]);
  assert.deepEqual(after(50, 'late'), [['late']]);
  for (let i = 0; i < 40; ++i) after(1, i);
  after(1, 'held');
  after(1, 'too');
  events.flush();
  events.flush();
  assert.deepEqual(sent.flat().slice(-2), ['held', 'too']);
});

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

test('an_aborted_reply_throws_the_reason_also_while_reading', endless, async () => {
  const model = await load();
  for (const message of ['Hello!', 'unread']) {
    const stop = new AbortController();
    const reply = model.session().reply(message, { signal: stop.signal });
    await model.session().stats();
    const reason = new Error('mine');
    stop.abort(reason);
    await assert.rejects(reply.result, (error) => error === reason);
  }
  await model.dispose();
});

test('every_option_reaches_the_worker', endless, async () => {
  const { args } = await Oriel.plan('model', { worker, log() {}, memory: '300MB', contextSize: 5, prefillBatch: 64 });
  assert.deepEqual(args, { memory: '300MB', contextSize: 5, prefillBatch: 64 });
  await assert.rejects(load({ logLevel: 'verbose' }), { status: 'argument', message: /"verbose": give warning/ });
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
module.exports = async () => ({ _malloc: () => 4096, _free() {}, _oriel_option_list() { throw new WebAssembly.RuntimeError('trap ' + ++calls); } });`);
  const planner = await Oriel.planner(new Uint8Array(8), { worker: pathToFileURL(join(folder, 'src/engine/node.js')) });
  for (let i = 0; i < 2; ++i) await assert.rejects(planner.plan(), { status: 'internal', message: /trap 1.*load the model again/ });
  planner.dispose();
});

test('addresses_above_2_gib_are_unsigned', (t) => {
  let memory;
  try {
    memory = new WebAssembly.Memory({ initial: 40000 });  // only two of its pages are touched
  } catch (error) {
    return t.skip(`no memory of 2.4 GiB: ${error.message}`);
  }
  const bytes = new Uint8Array(memory.buffer);
  let free = 0x80000000;
  const freed = [];
  const module = {
    _oriel_version: () => 0x80000200 | 0, _malloc: () => (free += 4096) | 0, _free: (at) => freed.push(at),
    _web_model_load: (name, settings, count, place) => (put(place >>> 0, 0x80000700), 0),
  };
  const engine = Engine.onModule(module, memory);
  const put = (at, word) => new DataView(memory.buffer).setUint32(at, word, true);
  new TextEncoder().encodeInto('0.1.0', bytes.subarray(0x80000200));
  assert.equal(engine.text(engine.m._oriel_version()), '0.1.0');
  assert.equal(engine.made((place) => engine.m._web_model_load(0, 0, 0, place)), 0x80000700);
  freed.length = 0;
  free = 0x80000000;
  const saved = engine.filled(1, (at, capacity, needed) => {
    if (at) bytes.fill(7, at, at + capacity);
    else put(needed, 3);
    return at ? 0 : 11;
  });
  assert.deepEqual(saved, Uint8Array.of(7, 7, 7));
  assert.deepEqual(freed, [0x80001000, 0x80002000]);
  assert.throws(() => engine.allocate(2 ** 32 + 8), { status: 6 });  // and not 8 bytes

  const heard = [];
  const hear = (...given) => heard.push(given);
  engine.hooks = { log: hear, token: hear, part: hear, logits: hear };
  const host = hostOf(memory, () => engine);
  host.files.set('0.1.0', { size: 5e9, read: (offset, into) => heard.push([offset, into.byteOffset, into.byteLength]) });
  const file = host.open(0x80000200 | 0);
  assert.equal(host.size(file), 5e9);
  assert.equal(host.read(file, 4.5e9, 0x80000300 | 0, 16), 0);
  host.log(1, 0x80000200 | 0);
  host.token(-5, 0x80000400 | 0, 2, -0.5, 1, 0x80000440 | 0);
  host.part(1, 0, 0x80000500 | 0, 3);
  host.logits(2 ** 33, 0x80000600 | 0, 10);
  host.number(0x80000200 | 0, 7);
  assert.deepEqual(engine.numbers, { '0.1.0': 7 });
  assert.deepEqual(heard, [[4.5e9, 0x80000300, 16], [1, '0.1.0'], [-5, 0x80000400, 2, -0.5, 1, 0x80000440], [1, 0, 0x80000500, 3], [2 ** 33, 0x80000600, 10]]);
});

test('pictures_are_structs_of_both_address_sizes', () => {
  for (const pointerBytes of [4, 8]) {
    const heap = new Uint8Array(65536);
    let free = 4096;
    let seen;
    const calls = {
      _malloc: (bytes) => (free += bytes + 8 & ~7, free - (bytes + 8 & ~7)), _free: () => {},
      _oriel_chat_add_pictures: (session, json, bytes, pictures, count) => (seen = { json: new TextDecoder().decode(heap.subarray(json, json + bytes)), pictures, count }, 0),
    };
    const memory = { pointerBytes, mostBytes: 65536, read: (at, bytes) => heap.slice(at, at + bytes), write: (at, data) => heap.set(data, at) };
    const engine = new Engine(calls, memory);
    engine.sessions.set(1, { at: 77 });
    const pictures = [{ data: Uint8Array.from({ length: 18 }, (_, i) => i), width: 3, height: 2 }, { data: new Uint8Array(20).fill(9), width: 1, height: 5 }];
    engine.add(1, { role: 'user', content: [{ type: 'image', picture: 1 }] }, pictures);
    assert.equal(seen.count, 2);
    assert.equal(JSON.parse(seen.json).content[0].picture, 1);
    const size = pointerBytes === 4 ? 20 : 32;
    const view = new DataView(heap.buffer, seen.pictures);
    pictures.forEach(({ data, width, height }, i) => {
      const at = view.getUint32(i * size, true);
      assert.deepEqual(heap.slice(at, at + data.length), data);
      const fields = [0, 4, 8].map((offset) => view.getUint32(i * size + pointerBytes + offset, true));
      assert.deepEqual(fields, [width, height, 0]);
      assert.equal(view.getUint32(i * size + 2 * pointerBytes + 8, true), i);  // RGB, then RGBA
    });
  }
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
});

test('options_become_names_and_texts', () => {
  const pairs = [
    [{ memory: '300MB', kv: 'k8v4', prefillBatch: 64, f16Layers: [0, 1] }, ['memory', '300MB', 'kv', 'k8v4', 'prefill_batch', '64', 'f16_layers', '0,1']],
    [{ greedy: true, minP: 1e-7, presencePenalty: -2.5e-9, topP: 0.95, seed: 2 ** 63 }, ['greedy', 'true', 'min_p', '0.0000001', 'presence_penalty', '-0.0000000025', 'top_p', '0.95', 'seed', '9223372036854775808']],
    [{ stop: ['a', 'b'], tools: [{ type: 'function' }], schema: { a: 1 }, date: new Date(2026, 10, 5), trigger: 'x' },
      ['stop', 'a', 'stop', 'b', 'tools', '[{"type":"function"}]', 'schema', '{"a":1}', 'date', '20261105', 'trigger', 'x']],
    [{ window: undefined, kv: null, stop: [] }, []],
    [{ seed: 2n ** 64n - 1n, temperature: NaN }, ['seed', '18446744073709551615', 'temperature', 'NaN']],
  ];
  for (const [options, texts] of pairs) assert.deepEqual(settingsOf(options), texts);
  assert.throws(() => settingsOf({ max_tokens: 5 }), { status: 1, message: 'the option "max_tokens" is not known: did you mean "maxTokens"?' });
  assert.equal(flagsOf({ special: true, bos: false }, { special: 1, bos: 2 }), 1);
  for (const name of ['specials', 'toString']) assert.throws(() => flagsOf({ [name]: true }, { special: 1 }), { status: 1, message: /: give special/ });
});

test('names_of_the_library_become_camel_case', () => {
  assert.deepEqual(parse('{"kv_bytes":1,"groups":[{"s_per_token":null}],"tensor_types":{"Q8_0":3}}'), { kvBytes: 1, groups: [{ sPerToken: null }], tensorTypes: { Q8_0: 3 } });
  const engine = new Engine({}, new WebAssembly.Memory({ initial: 1 }));
  for (const name of ['prefill_batch', 'max_token']) engine.known.add(name);
  assert.equal(engine.spoken('the option "max_token" is bad: "get_weather" or "prefill_batch"'), 'the option "maxToken" is bad: "get_weather" or "prefillBatch"');
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
