// The package in Node. References are the native program's: another compiler, another instruction set.
import assert from 'node:assert/strict';
import { readFileSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Oriel, OrielError } from '../src/node.js';
import { serve } from '../serve.mjs';
import { engines, familyFolder, layout, model as file, native, noEyes, noFamilies, noNative, visionFolder } from './native.mjs';

const memory = '40MB';
const flags = ['--memory', '40MB', '--window', '300'];
const prompts = ['Hello!', 'What is the capital of France?', 'Tell me about cats.', 'Why is the sky blue?'];

for (const { engine, skip } of engines) for (const threads of [1, 2]) {
  describe(`${engine} with ${threads} thread(s)`, { skip }, () => {
    let model;
    before(async () => {
      model = await Oriel.load(file, { engine, memory, ...layout, threads, constraints: true, transcript: 8192 });
    });
    after(() => model && model.dispose());

    test('a_model_has_so_many_threads', () => assert.equal(model.threads, threads));

    test('greedy_replies_have_the_native_tokens', { skip: noNative }, async () => {
      for (const prompt of prompts) {
        const chat = model.session();
        const { tokenIds, text } = await chat.reply(prompt, { greedy: true, maxTokens: 60 }).result;
        const reference = native(['run', file, ...flags, '--kv', layout.kv, '--greedy', '--tokens', '60', '--prompt', prompt]);
        assert.deepEqual(tokenIds, reference.token_ids, prompt);
        assert.equal(text, reference.text);
        await chat.dispose();
      }
    });

    test('nll_of_a_text_is_the_native_one', { skip: noNative }, async () => {
      const words = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').slice(0, 3000);
      const folder = mkdtempSync(join(tmpdir(), 'oriel-'));
      writeFileSync(join(folder, 'text'), words);
      // In f16: two executors that round codes apart differ by more than a mistake would.
      const reference = native(['eval', file, ...flags, '--kv', 'f16', '--text', join(folder, 'text')]);
      const exact = await Oriel.load(file, { engine, memory, ...layout, kv: 'f16', threads });
      const score = await exact.session().score(await exact.tokenize(words));
      await exact.dispose();
      assert.equal(score.tokens, reference.tokens);
      assert.ok(Math.abs(score.nllMean - reference.nll_mean) < 2e-3, `${score.nllMean} and ${reference.nll_mean}`);
    });

    const families = ['llama-q4_k_m', 'gemma4-e', 'qwen35', 'lfm2moe', 'deepseek2', 'falcon-h1', 'exaone4-swa'];
    test('other_families_score_as_native', { skip: noNative || noFamilies }, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'oriel-'));
      const ids = [5, 7, 9, 11, 40];
      writeFileSync(join(folder, 'ids'), JSON.stringify({ ids }));
      for (const family of families) {
        const path = join(familyFolder, `${family}.gguf`);
        const reference = native(['eval', path, '--kv', 'f16', '--tokens-file', join(folder, 'ids'), '--nll']);
        const other = await Oriel.load(path, { engine, kv: 'f16', activationBits: 16, threads });
        const { nllMean } = await other.session().score(ids);
        await other.dispose();
        assert.ok(Math.abs(nllMean - reference.nll_mean) < 2e-3, `${family}: ${nllMean} and ${reference.nll_mean}`);
      }
    });

    test('a_reply_streams_and_ends_when_aborted', async () => {
      const chat = model.session({ system: 'You are a helpful assistant.' });
      const stop = new AbortController();
      let pieces = 0;
      await assert.rejects(async () => {
        for await (const piece of chat.reply('Tell me a long story.', { signal: stop.signal, ignoreStop: true, maxTokens: 5000 })) {
          assert.equal(typeof piece, 'string');
          if (++pieces === 3) stop.abort();
        }
      }, { name: 'AbortError' });
      assert.ok((await chat.stats()).position < 2000);
      assert.ok((await chat.reply('Hello!', { greedy: true }).result).text.length > 0);
      await chat.dispose();
    });

    test('leaving_the_loop_ends_the_reply', async () => {
      const chat = model.session();
      const reply = chat.reply('Hello!', { ignoreStop: true, maxTokens: 5000 });
      for await (const piece of reply) if (piece) break;
      assert.equal((await reply.result).stopReason, 'cancelled');
      await chat.dispose();
    });

    test('a_snapshot_goes_on_to_the_token', async () => {
      const chat = model.session();
      await chat.reply('Hello!', { greedy: true }).result;
      const kept = await chat.save();
      const next = await chat.reply('Who are you?', { greedy: true }).result;
      await chat.dispose();
      const other = model.session();
      assert.equal((await other.restore(kept)).how, 'exactly');
      assert.deepEqual((await other.reply('Who are you?', { greedy: true }).result).tokenIds, next.tokenIds);
      assert.ok((await model.describeSnapshot(kept)).position > 0);
      kept[kept.length >> 1] ^= 1;
      await assert.rejects(other.restore(kept), { status: 'format' });
      await other.dispose();
    });

    test('a_schema_holds', async () => {
      const chat = model.session();
      const schema = { type: 'object', properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer' } }, required: ['name', 'age'], additionalProperties: false };
      const reply = chat.reply('Who?', { schema, seed: 3, maxTokens: 200, valueParts: true });
      const told = { '/name': '', '/age': '', ended: [] };
      for await (const { type, path, text } of reply.events()) {
        if (type === 'string' || type === 'literal') told[path] += text;
        if (type === 'valueEnd') told.ended.push(path);
      }
      const { text } = await reply.result;
      assert.deepEqual(Object.keys(JSON.parse(text)).sort(), ['age', 'name']);
      assert.deepEqual({ name: told['/name'], age: Number(told['/age']) }, JSON.parse(text));
      assert.deepEqual(told.ended, ['/name', '']);
      await assert.rejects(chat.reply('Who?', { grammar: 'root ::= (' }).result, OrielError);
      await chat.dispose();
    });

    test('what_a_session_holds_is_told', async () => {
      const chat = model.session({ system: 'Be kind.' });
      const { tokens, logprobs, promptTokensEvicted } = await chat.reply('Hello!', { greedy: true, topLogprobs: 3 }).result;
      const told = await chat.describe();
      const stats = await chat.stats();
      assert.ok(tokens > 0);
      assert.equal(promptTokensEvicted, 0);
      assert.deepEqual(logprobs.map(({ top }) => top.length), new Array(tokens).fill(3));
      assert.equal(told.turns.length, 1);
      assert.equal(stats.position, told.position);
      assert.equal((await chat.tokens()).length, told.position);
      assert.deepEqual((await chat.transcript()).map((message) => message.role), ['system', 'user', 'assistant']);
      await chat.reset();
      await chat.dispose();
    });
  });
}

for (const { engine, skip } of engines) describe(`models in ${engine}`, { skip }, () => {
  test('a_source_is_a_path_bytes_a_blob_or_an_address', async (t) => {
    const bytes = readFileSync(file);
    const { server, url } = await serve({ root: file.replace(/[^/]*$/, '') });
    t.after(() => server.close());
    for (const source of [file, bytes, new Blob([bytes]), `${url}oriel-tiny-q8_0.gguf`, new URL(`file://${file}`)]) {
      const plan = await Oriel.plan(source, { engine, memory, ...layout });
      assert.equal(plan.windowTokens, 300);
    }
    const model = await Oriel.load(`${url}oriel-tiny-q8_0.gguf`, { engine, memory, ...layout, threads: 1 });
    server.close();
    server.closeAllConnections();
    assert.equal(await model.detokenize(await model.tokenize('Grüße, 世界')), 'Grüße, 世界');
    assert.match(await model.render([{ role: 'user', content: 'Hi' }]), /Hi/);
    const chat = model.session();
    const vector = await chat.embed('A sentence.');
    assert.equal(vector.length, (await model.describe()).nEmbd);
    assert.ok(Math.abs(vector.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-4);
    await model.dispose();
    await assert.rejects(model.tokenize('gone'), { status: 'state' });
  });

  test('a_picture_is_read_in_every_form', { skip: noEyes }, async () => {
    const [width, height] = [40, 30];
    const pixel = (i) => [i * 7, i / width * 5, i % 31 * 8];
    const pixels = (channels) => Uint8Array.from({ length: width * height * channels }, (_, at) => pixel(Math.floor(at / channels))[at % channels] ?? at);
    const seeing = { engine, memory: '64MB', mmproj: `${visionFolder}/mmproj-gemma4v.gguf`, imageTokens: 70, window: 512, threads: 1 };
    const plan = await Oriel.plan(`${visionFolder}/gemma4.gguf`, seeing);
    assert.equal(plan.imageTokens, 70);
    const bytes = readFileSync(seeing.mmproj);
    const model = await Oriel.load(`${visionFolder}/gemma4.gguf`, { ...seeing, mmproj: bytes, transcript: '8KB' });
    const chat = model.session();
    const told = async (...pictures) => {
      await chat.reset();
      const { tokenIds, logprobs, promptTokens } = await chat.reply({ role: 'user', content: 'What is this?', pictures }, { greedy: true, maxTokens: 4, topLogprobs: 1 }).result;
      assert.ok(promptTokens > 20 * pictures.length, `${promptTokens}`);
      return [tokenIds, logprobs];
    };
    const want = await told({ data: pixels(4), width, height });
    assert.deepEqual(await told({ data: Buffer.from(pixels(3)), width, height }), want);
    assert.deepEqual(await told({ data: new Uint8ClampedArray(pixels(4)), width, height }), want);
    assert.notDeepEqual(await told({ data: new Uint8Array(width * height * 4), width, height }), want);
    await told({ data: pixels(4), width, height }, { data: pixels(3), width, height });
    await chat.reset();
    const added = chat.add([{ role: 'user', content: [{ type: 'text', text: 'Look.' }], pictures: [{ data: pixels(3), width, height }] }, { role: 'assistant', content: 'Yes.' }]);
    const { tokenIds } = await chat.reply('And?', { greedy: true, maxTokens: 2 }).result;  // is sent after it
    await added;
    assert.equal(tokenIds.length, 2);
    const transcript = await chat.transcript();
    assert.deepEqual(transcript.map(({ role }) => role), ['user', 'assistant', 'user', 'assistant']);
    assert.equal(transcript[0].content[0].type, 'image');
    const before = (await chat.stats()).position;
    for (const picture of [{ data: pixels(4), width, height: 31 }, { data: pixels(4), width: 0, height: 0 }, new Blob([bytes]), bytes, null, 'cat.png', { width, height }]) {
      await assert.rejects(chat.add({ role: 'user', content: 'x', pictures: [picture] }), { status: 'argument', message: /: give/ }, `${picture}`);
    }
    assert.equal((await chat.stats()).position, before);
    await model.dispose();
    await assert.rejects(Oriel.load(`${visionFolder}/gemma4.gguf`, { ...seeing, mmproj: '/nowhere.gguf' }), { status: 'io' });
  });

  test('pictures_are_for_models_that_see', async () => {
    const model = await Oriel.load(file, { engine, memory, ...layout, threads: 1 });
    const chat = model.session();
    await assert.rejects(chat.add({ role: 'user', content: 'x', pictures: [{ data: new Uint8Array(48), width: 4, height: 3 }] }), { status: 'unsupported' });
    assert.equal((await chat.stats()).position, 0);
    await model.dispose();
  });

  test('plans_are_the_native_ones', { skip: noNative }, async () => {
    const planner = await Oriel.planner(file, { engine });
    for (const size of [300, 633, 'max']) {
      const plan = await planner.plan({ memory, window: size, kv: 'k8v4' });
      const reference = native(['plan', file, '--memory', '40MB', '--window', `${size}`, '--kv', 'k8v4']);
      assert.equal(plan.windowTokens, reference.window_tokens);
      assert.equal(plan.weightsBytes, reference.weights_bytes);
      assert.equal(plan.kvBytes, reference.kv_bytes);
    }
    planner.dispose();
  });

  test('memory_is_bounded_by_the_plan', async () => {
    const small = await Oriel.plan(file, { engine, memory: 1, window: 200 });
    assert.equal(small.fits, false);
    await assert.rejects(Oriel.load(file, { engine, memory: 1, window: 200 }), (error) => error.status === 'memory-budget' && error.plan.minimumBytes > 0);
    const model = await Oriel.load(file, { engine, memory: small.minimumBytes, window: 200, threads: 1 });
    const chat = model.session();
    await chat.reply('Hello!', { greedy: true }).result;
    const { wasmBytes, deviceBytes, hostBytes } = await chat.stats();
    if (engine === 'wasm') assert.ok(wasmBytes < model.plan.totalBytes + 6e6, `${wasmBytes} for ${model.plan.totalBytes}`);
    assert.equal(deviceBytes + hostBytes, model.plan.totalBytes);
    await model.dispose();
  });

  test('what_is_no_model_is_said', async () => {
    await assert.rejects(Oriel.load('/nowhere.gguf', { engine }), OrielError);
    await assert.rejects(Oriel.load(new Uint8Array(100), { engine }), { status: 'format' });
    await assert.rejects(Oriel.load(readFileSync(file).subarray(0, 4000000), { engine, memory }), OrielError);
    await assert.rejects(Oriel.load(file, { engine, memory: 'much' }), { status: 'argument' });
  });
});
