// `oriel serve` as the published OpenAI client sees it. ORIEL_URL, ORIEL_TOOLS_URL: two servers, the second with a
// chat template that knows tools. Run by scripts/serve_clients.sh.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {test} from 'node:test';
import OpenAI from 'openai';

const client = url => new OpenAI({baseURL: url + '/v1', apiKey: 'secret', maxRetries: 0});
const openai = client(process.env.ORIEL_URL);
const with_tools = client(process.env.ORIEL_TOOLS_URL);
const messages = [{role: 'user', content: 'Tell me about a fox.'}];
const model = (await openai.models.list()).data[0].id;

const tools = [{type: 'function', function: {name: 'get_weather', description: 'Weather of a city', strict: true,
  parameters: {type: 'object', properties: {city: {type: 'string', enum: ['Lisbon', 'Oslo']},
    days: {type: 'integer', minimum: 1, maximum: 7}}, required: ['city', 'days'], additionalProperties: false}}}];

test('the sample of docs/serve.md', () => {
  const [, sample] = readFileSync(process.env.ORIEL_PAGE, 'utf8').match(/^```js\n(.*?)^```$/ms);
  writeFileSync('sample.mjs', sample.replace('http://127.0.0.1:8080', process.env.ORIEL_PAGE_URL));
  assert.match(execFileSync(process.execPath, ['sample.mjs'], {encoding: 'utf8'}), /[A-Za-z]{2,}/);
});

test('models', async () => {
  assert.equal((await openai.models.retrieve(model)).id, model);
  await assert.rejects(openai.models.retrieve('nobody'), OpenAI.NotFoundError);
});

test('chat', async () => {
  const reply = await openai.chat.completions.create({model, messages, temperature: 0, max_tokens: 40});
  assert.equal(reply.object, 'chat.completion');
  assert.equal(reply.choices[0].message.role, 'assistant');
  assert.ok(reply.choices[0].message.content.length > 0);
  assert.ok(['stop', 'length'].includes(reply.choices[0].finish_reason));
  assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
});

test('stream', async () => {
  const whole = await openai.chat.completions.create({model, messages, temperature: 0, max_tokens: 40});
  const stream = await openai.chat.completions.create(
    {model, messages, temperature: 0, max_tokens: 40, stream: true, stream_options: {include_usage: true}});
  let text = '', usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test('the client puts a stream together', async () => {
  const runner = openai.chat.completions.stream({model, messages, temperature: 0, max_tokens: 40});
  const seen = [];
  runner.on('content', delta => seen.push(delta));
  const final = await runner.finalChatCompletion();
  assert.equal(seen.join(''), final.choices[0].message.content);
});

test('several choices, and log-probabilities', async () => {
  const reply = await openai.chat.completions.create(
    {model, messages, n: 2, seed: 3, temperature: 1.2, max_tokens: 8, logprobs: true, top_logprobs: 2});
  assert.equal(reply.choices.length, 2);
  for (const choice of reply.choices) {
    assert.ok(choice.logprobs.content.every(each => each.top_logprobs.length === 2 && each.logprob <= 0));
  }
});

test('a conversation that goes on', async () => {
  const first = await openai.chat.completions.create({model, messages, temperature: 0, max_tokens: 40});
  const second = await openai.chat.completions.create({model, temperature: 0, max_tokens: 40,
    messages: [...messages, first.choices[0].message, {role: 'user', content: 'Why?'}]});
  assert.ok(second.usage.prompt_tokens_details.cached_tokens > 0);
});

test('completions', async () => {
  const reply = await openai.completions.create({model, prompt: 'Once upon a time', temperature: 0, max_tokens: 8});
  assert.ok(reply.choices[0].text.length > 0);
  let text = '';
  for await (const chunk of await openai.completions.create(
    {model, prompt: 'Once upon a time', temperature: 0, max_tokens: 8, stream: true})) {
    text += chunk.choices[0].text;
  }
  assert.equal(text, reply.choices[0].text);
});

const schema = {type: 'object', additionalProperties: false, required: ['name', 'legs', 'wild'], properties: {
  name: {type: 'string', maxLength: 12}, legs: {type: 'integer', minimum: 0, maximum: 8}, wild: {type: 'boolean'}}};

test('a JSON schema', async () => {
  const reply = await openai.chat.completions.create({model, messages, temperature: 0, max_tokens: 200,
    response_format: {type: 'json_schema', json_schema: {name: 'animal', strict: true, schema}}});
  const animal = JSON.parse(reply.choices[0].message.content);
  assert.deepEqual(Object.keys(animal).sort(), ['legs', 'name', 'wild']);
  assert.ok(Number.isInteger(animal.legs) && animal.legs <= 8 && typeof animal.wild === 'boolean');
  const parsed = await openai.chat.completions.parse({model, messages, temperature: 0, max_tokens: 200,
    response_format: {type: 'json_schema', json_schema: {name: 'animal', strict: true, schema}}});
  assert.deepEqual(parsed.choices[0].message.content, reply.choices[0].message.content);
});

test('any JSON object', async () => {
  const reply = await openai.chat.completions.create({model, messages, temperature: 0, max_tokens: 60,
    response_format: {type: 'json_object'}});
  assert.ok(reply.choices[0].message.content.trimStart().startsWith('{'));
});

test('tools', async () => {
  const reply = await with_tools.chat.completions.create(
    {model, messages, tools, tool_choice: 'required', temperature: 0, max_tokens: 200});
  assert.equal(reply.choices[0].finish_reason, 'tool_calls');
  const [call] = reply.choices[0].message.tool_calls;
  const read = JSON.parse(call.function.arguments);
  assert.ok(call.function.name === 'get_weather' && ['Lisbon', 'Oslo'].includes(read.city) && read.days <= 7);
  const behind = await with_tools.chat.completions.create({model, tools, temperature: 0, max_tokens: 30,
    messages: [...messages, reply.choices[0].message, {role: 'tool', tool_call_id: call.id, content: 'Sunny.'}]});
  assert.ok(behind.usage.prompt_tokens_details.cached_tokens > 0);
});

test('tools in a stream, put together by the client', async () => {
  const runner = with_tools.chat.completions.stream(
    {model, messages, tools, tool_choice: {type: 'function', function: {name: 'get_weather'}}, temperature: 0,
      max_tokens: 200});
  const final = await runner.finalChatCompletion();
  const [call] = final.choices[0].message.tool_calls;
  assert.ok(['Lisbon', 'Oslo'].includes(JSON.parse(call.function.arguments).city));
});

test('the client runs tools', async () => {
  let asked = null;
  const runner = with_tools.chat.completions.runTools({model, messages, temperature: 0, max_tokens: 200,
    tool_choice: {type: 'function', function: {name: 'get_weather'}},
    tools: [{type: 'function', function: {...tools[0].function, parse: JSON.parse,
      function: given => { asked = given; return 'Sunny.'; }}}]}, {maxChatCompletions: 2});
  await runner.done().catch(() => {});
  assert.ok(['Lisbon', 'Oslo'].includes(asked.city));
});

test('embeddings', async () => {
  const input = ['A cat sleeps.', 'Un chat dort.'];
  const packed = await openai.embeddings.create({model, input});  // base64 on the way
  const plain = await openai.embeddings.create({model, input, encoding_format: 'float'});
  assert.equal(packed.data.length, 2);
  for (const i of [0, 1]) {
    const a = packed.data[i].embedding, b = plain.data[i].embedding;
    assert.equal(a.length, b.length);
    assert.ok(a.every((value, k) => Math.abs(value - b[k]) < 1e-6));
    assert.ok(Math.abs(Math.hypot(...a) - 1) < 1e-4);
  }
});

test('errors', async () => {
  await assert.rejects(openai.chat.completions.create({model, messages: []}),
    error => error instanceof OpenAI.BadRequestError && error.param === 'messages' && error.type ===
      'invalid_request_error');
  await assert.rejects(openai.chat.completions.create({model, messages, temperature: 7}),
    error => error.status === 400 && error.param === 'temperature');
  const stranger = new OpenAI({baseURL: process.env.ORIEL_URL + '/v1', apiKey: 'wrong', maxRetries: 0});
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});

test('abort', async () => {
  const busy = async () => {
    const text = await (await fetch(process.env.ORIEL_URL + '/metrics', {headers: {Authorization: 'Bearer secret'}}))
      .text();
    return Number(/^oriel_sessions_busy (\d+)$/m.exec(text)[1]);
  };
  const stream = await openai.completions.create(
    {model, prompt: 'Once', max_tokens: 1000000, stream: true, logit_bias: JSON.parse(process.env.ORIEL_NO_STOP)});
  let chunks = 0;
  for await (const _ of stream) {
    if (++chunks === 5) break;  // the client closes the connection
  }
  for (let i = 0; i < 200 && await busy() !== 0; ++i) await new Promise(done => setTimeout(done, 25));
  assert.equal(await busy(), 0);
});
