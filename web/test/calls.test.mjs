// Wrong calls with a real model: which end, which are refused, and the state afterwards.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { Oriel } from '../src/node.js';
import { engines, layout, model as file, noModule } from './native.mjs';

const memory = '40MB';
const greedy = { greedy: true, maxTokens: 8 };
const long = { greedy: true, ignoreStop: true, maxTokens: 100000 };
const argument = { status: 'argument' };
const patience = { timeout: 20000 };

/** Reads a reply to its end, and calls `act` at its first piece: before that a cancel takes the message back. */
async function atFirstPiece(reply, act) {
  let acted = false;
  for await (const piece of reply) {
    if (piece && !acted) {
      acted = true;
      act();
    }
  }
}

describe('calls', { skip: noModule }, () => {
  let model;
  let chat;
  before(async () => {
    model = await Oriel.load(file, { memory, ...layout, threads: 1, constraints: true, transcript: '8KB', sessions: 2 });
    chat = model.session();
  });
  after(() => model && model.dispose());

  test('one_signal_ends_a_running_and_a_waiting_reply', patience, async () => {
    const other = model.session();
    const stop = new AbortController();
    const replies = [chat, other].map((session) => session.reply('Hello!', { ...long, signal: stop.signal }));
    setTimeout(() => stop.abort(), 200);
    for (const reply of replies) await assert.rejects(reply.result, { name: 'AbortError' });
    await other.dispose();
  });

  test('a_cancel_of_a_reply_that_is_over_takes_none_back', patience, async () => {
    await chat.reset();
    const over = chat.reply('Hello!', greedy);
    await over.result;
    const running = chat.reply('Hello!', long);
    await atFirstPiece(running, () => {
      running.cancel();
      over.cancel();
    });
    assert.equal((await running.result).stopReason, 'cancelled');
  });

  test('a_cancel_right_after_reply_counts_and_says_nothing', patience, async () => {
    await chat.reset();
    const reply = chat.reply('Hello!', long);
    reply.cancel();
    await assert.rejects(reply.result, { name: 'AbortError', status: 'cancelled' });
    assert.equal((await chat.stats()).position, 0);
  });

  test('dispose_ends_a_running_reply', patience, async () => {
    const other = model.session();
    const reply = other.reply('Hello!', long);
    await atFirstPiece(reply, () => other.dispose());
    assert.equal((await reply.result).stopReason, 'cancelled');
  });

  test('a_system_message_that_fails_is_said_by_the_first_call', async () => {
    const image = [{ type: 'image_url', image_url: { url: 'x' } }];
    for (const [system, status] of [[42, 'argument'], ['Be kind. \ud83d', 'argument'], [image, 'unsupported']]) {
      const other = model.session({ system });
      await assert.rejects(other.reply('Hello!', greedy).result, { status });
      await other.dispose();
    }
    const other = model.session({ system: 'Be kind.' });  // nothing is left of those
    await other.stats();
    await other.dispose();
  });

  test('a_reset_that_nobody_awaits_begins_with_the_system_message', async () => {
    const other = model.session({ system: 'Be kind.' });
    await other.reply('Hello!', greedy).result;
    const reset = other.reset();
    await other.reply('Hello!', greedy).result;
    await reset;
    assert.deepEqual((await other.transcript()).map((message) => message.role), ['system', 'user', 'assistant']);
    await other.dispose();
  });

  test('a_refused_reply_leaves_no_message', async () => {
    await chat.reset();
    await chat.reply('Hello!', greedy).result;
    const before = [(await chat.stats()).position, await chat.transcript()];
    const wrong = [{ toolChoice: 'any' }, { temperature: -3 }, { temperature: 'hot' }, { maxTokens: 0.5 }, { grammar: 'root ::= (' },
      { schema: { type: 'string', pattern: '(?=x)' } }, { stop: 'a\0b' }, { trigger: 'a\0b', grammar: 'root ::= "a"' }];
    for (const options of wrong) {
      await assert.rejects(chat.reply('Who are you?', { ...greedy, ...options }).result, /: /, JSON.stringify(options));
      assert.deepEqual([(await chat.stats()).position, await chat.transcript()], before, JSON.stringify(options));
    }
    await assert.rejects(chat.reply([{ role: 'user', content: 'Hi' }, {}], greedy).result, argument);
    assert.deepEqual([(await chat.stats()).position, await chat.transcript()], before);
    const retried = await chat.reply('Who are you?', greedy).result;
    await chat.reset();
    await chat.reply('Hello!', greedy).result;
    assert.deepEqual((await chat.reply('Who are you?', greedy).result).tokenIds, retried.tokenIds);
  });

  test('numbers_that_would_wrap_or_vanish_are_refused', async () => {
    await chat.reset();
    for (const maxTokens of [-1, 0.5, 2 ** 32, 2 ** 32 + 3, NaN, 'ten']) {
      await assert.rejects(chat.reply('Hello!', { maxTokens }).result, argument, `${maxTokens}`);
    }
    await assert.rejects(chat.reply('Hello!', { seed: 0.5 }).result, argument);
    const { tokens } = await chat.reply('Hello!', { seed: 7, temperature: 0.5, topK: 0, minP: 0, topP: 0.9, ignoreStop: true, maxTokens: 3 }).result;
    assert.equal(tokens, 3);
    for (const ids of [[2 ** 32 + 300, 301], [0.5], ['5'], [NaN]]) {
      await assert.rejects(chat.append(ids), argument);
      await assert.rejects(chat.score(ids), argument);
      await assert.rejects(model.detokenize(ids), argument);
    }
    const wrong = [{ window: 2 ** 32 + 64 }, { window: 0.9 }, { window: -1 }, { transcript: '4295MB' }, { sessions: 2 ** 32 + 1 }];
    for (const options of wrong) await assert.rejects(Oriel.plan(file, { memory, ...options }), argument, JSON.stringify(options));
    assert.equal((await Oriel.plan(file, { memory, ...layout, sinks: 0 })).sinkTokens, 0);
    assert.equal((await Oriel.plan(file, { memory, ...layout, transcript: '64KB' })).transcriptBytes, 64000);
  });

  test('going_back_wants_a_position_or_turns', async () => {
    await chat.reset();
    await chat.reply('Hello!', greedy).result;
    const ids = await chat.tokens();
    for (const value of [undefined, null, {}, '5', NaN, -1, 0.5, 1e300, { turns: -1 }, { turns: 0.5 }, { turns: 1e300 }, { turns: '1' }, { mark: 'none' }, { mark: 5 }]) {
      await assert.rejects(chat.goBack(value), argument, `${value}`);
    }
    for (const first of [-1, NaN, 'x', 0.5, null]) await assert.rejects(chat.tokens(first), argument, `${first}`);
    assert.deepEqual(await chat.tokens(), ids);
    await chat.goBack(ids.length - 2);
    assert.deepEqual(await chat.tokens(), ids.slice(0, -2));
    await chat.mark('here');
    await chat.append('more');
    await chat.goBack({ mark: 'here' });
    assert.deepEqual(await chat.tokens(), ids.slice(0, -2));
    await chat.goBack({ turns: 1 });
    assert.equal((await chat.stats()).position, 0);
    await assert.rejects(chat.goBack(0, { again: true }), { status: 'argument', message: /"again".*readAgain/ });
  });

  test('adapters_are_chosen_by_name', async () => {
    await chat.reset();
    await chat.useAdapters();
    await chat.useAdapters('none');
    for (const value of ['style', 5, null]) await assert.rejects(chat.useAdapters(value), argument, `${value}`);
  });

  test('a_fork_goes_on_by_itself', async () => {
    await chat.reset();
    await chat.reply('Hello!', greedy).result;
    const ids = await chat.tokens();
    const fork = chat.fork();
    assert.deepEqual(await fork.tokens(), ids);
    const { tokenIds } = await fork.reply('Who are you?', greedy).result;
    assert.deepEqual(await chat.tokens(), ids);
    assert.deepEqual((await chat.reply('Who are you?', greedy).result).tokenIds, tokenIds);
    await assert.rejects(chat.fork().tokens(), { status: 'state' });  // there are two sessions
    await fork.dispose();
  });

  test('a_prefix_begins_every_session', async () => {
    const shared = await Oriel.load(file, { memory, ...layout, threads: 1, prefixTokens: 64 });
    const first = shared.session();
    await first.append('It is cold outside.');
    await shared.setPrefix(first);
    assert.ok((await shared.describe()).prefix.tokens > 0);
    await first.dispose();
    await shared.setPrefix(null);
    assert.equal((await shared.describe()).prefix.tokens, 0);
    await shared.dispose();
  });

  test('texts_arrive_as_they_were_written_or_not_at_all', async () => {
    for (const text of ['\ufeffabc', '\ufeff', 'a\ufeffb', '\0a\0', '😀']) {
      assert.equal(await model.detokenize(await model.tokenize(text)), text);
      assert.ok((await model.render([{ role: 'user', content: `${text}.` }])).includes(`${text}.`), JSON.stringify(text));
    }
    const half = 'a\ud83d';
    await assert.rejects(model.tokenize(half), argument);
    await assert.rejects(model.render([{ role: 'user', content: half }]), argument);
    await assert.rejects(chat.add(half), argument);
    await assert.rejects(chat.append(half), argument);
    await assert.rejects(chat.reply('Hello!', { stop: half }).result, argument);
  });

  test('a_snapshot_is_restored_from_a_buffer', async () => {
    await chat.reset();
    await chat.reply('Hello!', greedy).result;
    const ids = await chat.tokens();
    const { buffer } = await chat.save();
    await chat.reset();
    assert.equal((await chat.restore(buffer)).how, 'exactly');
    assert.deepEqual(await chat.tokens(), ids);
    assert.equal((await model.describeSnapshot(buffer)).position, ids.length);
    for (const wrong of ['text', [1, 2], {}, undefined]) await assert.rejects(chat.restore(wrong), argument);
  });
});

// As python/tests/test_lines.py has it.
const { cases } = JSON.parse(readFileSync(new URL('../../tests/data/mistakes.json', import.meta.url)));
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const inCamel = (options = {}) => Object.fromEntries(Object.entries(options).map(([name, value]) => [camel(name), value]));
const codes = { 1: 'argument', 2: 'io', 4: 'unsupported', 5: 'memory-budget', 12: 'state', 13: 'context' };

for (const { engine, skip } of engines) {
  describe(`mistakes, ${engine}`, { skip }, () => {
    const load = { engine, memory: '40MB', ...layout, threads: 1, device: 'cpu' };

    async function make(model, one) {
      const chat = model.session(one.call === 'session' && !one.many ? inCamel(one.options) : {});
      if (one.many) {
        await chat.stats();
        return model.session().stats();
      }
      if (one.call === 'session') return chat.stats();
      if (one.call === 'embed') return chat.embed('word '.repeat(one.words));
      if (one.call === 'back') return chat.goBack('turns' in one ? { turns: one.turns } : { mark: one.mark });
      return chat.reply(one.message || 'Hello!', inCamel(one.options)).result;
    }

    for (const one of cases) {
      test(`${one.call} ${JSON.stringify(one.options || one.path || '')}`, async () => {
        // `the option "kv"` begins a line; inside of one an option is "kv".
        const line = one.line.replace(/^<(\w+)>/, (_, name) => `the option "${camel(name)}"`).replace(/<(\w+)>/g, (_, name) => `"${camel(name)}"`);
        const refused = { status: codes[one.status], message: new RegExp(`^${line}$`) };
        if (one.call === 'load') {
          await assert.rejects(Oriel.load(one.path || file, { ...load, ...inCamel(one.options) }), refused);
          return;
        }
        const model = await Oriel.load(file, { ...load, ...inCamel(one.load) });
        await assert.rejects(make(model, one), refused);
        await model.dispose();
      });
    }
  });
}
