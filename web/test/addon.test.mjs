// Features of the native addon only.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';

import { Oriel } from '../src/node.js';
import { engines, layout, model as file } from './native.mjs';

const { engine, skip } = engines[1];
const options = { engine, memory: '60MB', ...layout, device: 'cpu', threads: 1, transcript: 8192 };
const greedy = { greedy: true, maxTokens: 40, ignoreStop: true };

describe('addon', { skip }, () => {
  test('sessions_reply_side_by_side_and_as_alone', async () => {
    const model = await Oriel.load(file, { ...options, sessions: 3 });
    assert.equal(model.engine, 'native');
    const prompts = ['Hello!', 'Tell me about cats.', 'Why is the sky blue?'];
    const alone = [];
    for (const prompt of prompts) {
      const chat = model.session();
      alone.push((await chat.reply(prompt, greedy).result).tokenIds);
      await chat.dispose();
    }
    const chats = prompts.map(() => model.session());
    // Each reply waits at its third piece until all have come so far: none runs before another.
    let arrived = 0;
    let all;
    const here = new Promise((resolve) => (all = resolve));
    const together = await Promise.all(chats.map(async (chat, i) => {
      const reply = chat.reply(prompts[i], greedy);
      let pieces = 0;
      for await (const piece of reply) {
        if (piece && ++pieces === 3) {
          if (++arrived === prompts.length) all();
          await here;
        }
      }
      return (await reply.result).tokenIds;
    }));
    assert.deepEqual(together, alone);
    await assert.rejects(model.session().stats(), { status: 'state' });  // all planned sessions exist
    await model.dispose();
  });

  test('trimmed_memory_comes_back_with_the_conversation', async () => {
    const model = await Oriel.load(file, options);
    const [chat, folder] = [model.session(), mkdtempSync(join(tmpdir(), 'oriel-'))];
    await chat.reply('Hello!', greedy).result;
    const kept = await chat.save();
    const next = (await chat.reply('Who are you?', greedy).result).tokenIds;
    for (const [level, where] of [['scratch'], ['weights'], ['cache', { folder }]]) {
      await chat.reset();
      await chat.restore(kept);
      await model.trim(level, where);
      await assert.rejects(chat.reply('Who are you?', greedy).result, { status: 'state' }, level);
      await model.resume();
      assert.deepEqual((await chat.reply('Who are you?', greedy).result).tokenIds, next, level);
    }
    await assert.rejects(model.trim('everything'), { status: 'argument' });
    await model.dispose();
    rmSync(folder, { recursive: true });
  });

  test('a_paused_reply_goes_on', async () => {
    const model = await Oriel.load(file, options);
    const chat = model.session();
    const whole = (await chat.reply('Hello!', greedy).result).tokenIds;
    await chat.reset();
    const reply = chat.reply('Hello!', greedy);
    let pieces = 0;
    for await (const piece of reply) {
      if (piece && ++pieces === 3) {
        await model.pause();
        await model.resume();
      }
    }
    assert.deepEqual((await reply.result).tokenIds, whole);
    await model.dispose();
  });

  test('a_device_that_is_not_lost_recovers_to_itself', async () => {
    const model = await Oriel.load(file, options);
    const chat = model.session();
    await chat.reply('Hello!', greedy).result;
    assert.equal((await chat.recover()).exact, true);
    assert.ok((await chat.reply('And you?', greedy).result).tokens > 0);
    await model.dispose();
  });

  test('a_prefix_and_forks_are_shared_between_workers', async () => {
    const model = await Oriel.load(file, { ...options, sessions: 2, prefixTokens: 64 });
    const first = model.session();
    await first.append('You are a helpful assistant.');
    await model.setPrefix(first);
    await first.dispose();
    const chat = model.session();
    assert.ok((await chat.stats()).position > 0);
    await chat.append(' Once upon a time');
    const fork = chat.fork();
    const [a, b] = await Promise.all([chat.generate(greedy).result, fork.generate(greedy).result]);
    assert.deepEqual(a.tokenIds, b.tokenIds);
    await Promise.all([chat.dispose(), fork.dispose()]);
    await model.setPrefix(null);
    await model.dispose();
  });

  test('bytes_are_a_file_until_the_model_is_gone', async (t) => {
    const [folder, before] = [mkdtempSync(join(tmpdir(), 'oriel-')), process.env.TMPDIR];
    process.env.TMPDIR = folder;  // workers begin with it
    t.after(() => {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
      rmSync(folder, { recursive: true });
    });
    const model = await Oriel.load(readFileSync(file), options);
    assert.ok((await model.session().reply('Hello!', greedy).result).tokens > 0);
    assert.equal(readdirSync(folder).length, 1);
    await model.dispose();
    assert.deepEqual(readdirSync(folder), []);
  });

  test('memory_goes_back_when_a_model_is_disposed_of', async () => {
    const rss = async () => {
      const model = await Oriel.load(file, options);
      await model.session().reply('Hello!', { greedy: true, maxTokens: 3 }).result;
      await model.dispose();
      return process.memoryUsage().rss;
    };
    await rss();
    await rss();
    const begin = await rss();
    for (let i = 0; i < 8; ++i) await rss();
    assert.ok(await rss() < begin + 60e6, 'eight models of 20 MB would be more');
  });

  test('it_works_in_a_worker_thread_and_ends_with_it', async () => {
    const script = `
      import { workerData, parentPort } from 'node:worker_threads';
      const { Oriel } = await import(workerData.package);
      const model = await Oriel.load(workerData.file, workerData.options);
      const { text } = await model.session().reply('Hello!', { greedy: true, maxTokens: 20 }).result;
      parentPort.postMessage(text);
      await model.dispose();`;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`), {
      workerData: { package: new URL('../src/node.js', import.meta.url).href, file, options },
    });
    const text = await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject));
    assert.ok(text.length > 0);
    await worker.terminate();
  });

  test('a_disposed_model_ends_its_replies', async () => {
    const model = await Oriel.load(file, options);
    const reply = model.session().reply('Hello!', { ignoreStop: true, maxTokens: 100000 });
    const left = (async () => {
      for await (const piece of reply) if (piece) await model.dispose();
    })();
    await left.catch(() => {});
    await assert.rejects(model.tokenize('gone'), { status: 'state' });
  });

  test('a_wrong_engine_is_named', async () => {
    await assert.rejects(Oriel.load(file, { engine: 'gpu' }), /engine is "gpu": give auto/);
    await assert.rejects(Oriel.load(file, { engine: '/nowhere.node' }), /the native addon cannot be loaded/);
    await assert.rejects(Oriel.load(file, { ...options, temperatur: 1 }), { status: 'argument' });
  });
});

describe('samples of docs/web.md', { skip }, () => {
  const page = readFileSync(new URL('../../docs/web.md', import.meta.url), 'utf8');
  const oriel = new URL('../src/node.js', import.meta.url).href;
  const block = (begin) => {
    const [found] = page.match(new RegExp(`^    ${begin.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}.*\n(?:(?:    .*)?\n)*`, 'm'));
    return found.replace(/^ {4}/gm, '');
  };
  const run = (code) => {
    const folder = mkdtempSync(join(tmpdir(), 'oriel-'));
    writeFileSync(join(folder, 'sample.mjs'), code.replace(/'oriel'|'\.\/oriel\/src\/index\.js'/, `'${oriel}'`)
      .replace(/'[\w./-]*\.gguf'/, `'${file}'`).replaceAll('{ memory:', `{ engine: '${engine}', memory:`));
    const said = execFileSync(process.execPath, ['sample.mjs'], { cwd: folder, encoding: 'utf8' });
    rmSync(folder, { recursive: true });
    return said;
  };

  test('hello_in_node_and_in_a_browser', () => {
    const [, hello] = block('mkdir -p build/hello').match(/<<'END'\n(.*)^END$/ms);
    assert.match(run(hello), /[A-Za-z]{2,}/);
    const script = block('<script').replace(/<.*>\n/g, '');
    assert.match(run(`globalThis.document = { body: process.stdout };
process.stdout.append = process.stdout.write;
${script}`), /[A-Za-z]{2,}/);
  });

  test('options_and_saved_sessions', () => {
    const said = run(`import { Oriel } from 'oriel';
const source = 'model.gguf', options = { memory: '40MB' };
${block('const model = await Oriel.load(source')}
const chat = model.session();
await chat.reply('Hello!', { maxTokens: 8 }).result;
const { position } = await chat.stats();
${block('const kept')}
console.log(position > 0 && (await chat2.stats()).position === position);
await again.dispose();`);
    assert.equal(said, 'true\n');
  });

  test('errors', async () => {
    const lines = block('the option "prefilBatch"').trim().split('\n');
    for (const [i, wrong] of [{ prefilBatch: 64 }, { kv: 'k3v3' }].entries()) {
      await assert.rejects(Oriel.load(file, { ...options, ...wrong }), (error) => error.message.includes(lines[i]), lines[i]);
    }
  });
});
