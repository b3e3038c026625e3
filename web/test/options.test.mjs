// Every option of the library through the package: it is accepted, found among the options in force, and a wrong name or
// value is refused with its name as JavaScript writes it.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { optionList } from '../make.mjs';
import { Oriel } from '../src/node.js';
import { model as file, noModule } from './native.mjs';

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const listed = noModule ? [] : await optionList();
const ofScope = (scope) => listed.filter((option) => option.scope === scope);
const needed = { memory: '40MB', window: 300, threads: 1 };

/** Options that are not set here, and why. */
const unset = {
  draft_model: 'needs the file of an assistant model', prefix_file: 'needs a snapshot file', min_speed: 'needs measured rates',
  retrieval: 'needs a file system', retrieval_tokens: 'needs the option retrieval',
  prepared_dir: 'writes files', mmproj: 'needs the file of an encoder', image_tokens: 'needs the option mmproj', lora: 'needs the file of an adapter',
  control_vector: 'needs the file of a vector', control_layers: 'needs the option controlVector', adapters: 'needs the option lora',
};
/** Values that the range alone does not give. */
const values = {
  memory: 30000000, prepared_bytes: 1000000, window: 200, min_window: 100, system_prompt: 'Be kind.', calibration: 'none', prefill_batch: 16,
  transcript: 65536, session_windows: [100], window_shares: [0, 128, 0, 128, 0, 128], f16_layers: [1, 0, 0, 0, 0, 0],
  enable_features: 'early_stop', disable_features: 'early_stop', cache_folder: 'folder', retrieval_folder: 'folder', template: 'chatml',
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }], documents: [{ title: 'a', text: 'b' }],
  template_variables: { a: 1 }, date: 20250102, session_window: 200, schema: { type: 'integer' }, grammar: 'root ::= "a"',
  trigger: 'x', stop: ['a', 'b'], logit_bias: ['5:1.5'], tool_choice: 'checked',
};
/** Options whose values the model does not keep: their effect, if it has one here. */
const effects = {
  system_prompt: ({ prefix }) => prefix.tokens > 0, calibration: () => true, retrieval_folder: () => true,
  session_windows: ({ plan }) => plan.sessionWindows[0] === 100, window_shares: ({ plan }) => plan.windowShares[1] === 128,
  f16_layers: ({ layers }) => layers[0].kFormat === 'f16' && layers[1].kFormat !== 'f16',
};

function valueOf({ name, type, least, most, choices, default: standard }) {
  if (name in values) return values[name];
  if (type === 'choice') return choices.find((word) => word !== standard && !word.includes(':'));
  if (type === 'flag') return standard !== 'true';
  return Math.min(Math.max(least, type === 'number' ? 0.5 : 2), most);
}
const wrongOf = ({ type }) => (type === 'flag' || type === 'choice' || type === 'count' || type === 'number' || type === 'bytes' ? 'wrong' : undefined);

describe('options', { skip: noModule }, () => {
  let model;
  before(async () => {
    model = await Oriel.load(file, { ...needed, constraints: true, sessions: 2 });
  });

  for (const option of ofScope('load')) {
    test(`load_${option.name}`, { skip: unset[option.name] }, async () => {
      const one = await Oriel.load(file, { ...needed, kv: 'k8v4', [camel(option.name)]: valueOf(option) });
      const told = await one.describe();
      await one.dispose();
      const effect = effects[option.name];
      if (effect) assert.ok(effect(told), 'no effect');
      else assert.equal(told.options[camel(option.name)], String(valueOf(option)));
    });
  }
  for (const option of ofScope('session')) {
    test(`session_${option.name}`, { skip: unset[option.name] }, async () => {
      const chat = model.session({ [camel(option.name)]: valueOf(option) });
      const { options } = await chat.describe();
      await chat.dispose();
      const value = valueOf(option);
      assert.equal(options[camel(option.name)], typeof value === 'object' ? JSON.stringify(value) : String(value));
    });
  }
  for (const option of ofScope('reply')) {
    test(`reply_${option.name}`, async () => {
      const chat = model.session({ tools: values.tools });
      await chat.reply('Hello!', { maxTokens: 4, ...(option.name === 'trigger' ? { grammar: values.grammar } : {}), [camel(option.name)]: valueOf(option) }).result;
      await chat.dispose();
    });
  }

  test('wrong_values_are_refused_with_the_name', async () => {
    for (const option of listed.filter(wrongOf)) {
      const name = camel(option.name);
      const given = { [name]: wrongOf(option) };
      const refused = { status: 'argument', message: new RegExp(`"${name}".*"wrong": give `) };
      if (option.scope === 'load') await assert.rejects(Oriel.plan(file, { ...needed, ...given }), refused, name);
      const chat = option.scope === 'session' ? model.session(given) : model.session();
      if (option.scope === 'session') await assert.rejects(chat.stats(), refused, name);
      if (option.scope === 'reply') await assert.rejects(chat.reply('Hello!', given).result, refused, name);
      await chat.dispose();
    }
  });

  test('unknown_names_are_refused_with_a_suggestion', async () => {
    const plan = (options) => Oriel.plan(file, { ...needed, ...options });
    await assert.rejects(plan({ contextSize: 5 }), { status: 'argument', message: /"contextSize" is not known/ });
    await assert.rejects(plan({ prefilBatch: 5 }), { status: 'argument', message: /"prefilBatch".*did you mean "prefillBatch"\?/ });
    await assert.rejects(plan({ prefill_batch: 5 }), { status: 'argument', message: /"prefill_batch".*did you mean "prefillBatch"\?/ });
    await assert.rejects(plan({ maxTokens: 5 }), { status: 'argument', message: /"maxTokens"/ });  // of a reply
    await assert.rejects(model.session({ sistem: 'x' }).stats(), { status: 'argument', message: /"sistem"/ });
    const chat = model.session();
    await assert.rejects(chat.reply('Hello!', { maxToken: 5 }).result, { status: 'argument', message: /"maxToken".*"maxTokens"/ });
    await assert.rejects(model.tokenize('x', { speciel: true }), { status: 'argument', message: /"speciel"/ });
    await assert.rejects(chat.restore(new Uint8Array(8), { exactly: true }), { status: 'argument', message: /"exactly"/ });
    await chat.dispose();
  });

  test('names_survive_both_spellings', () => {
    for (const { name } of listed) assert.equal(camel(name).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name);
  });
});
