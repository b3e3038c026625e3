// `oriel serve` as clients of several libraries see it. ORIEL_TOOLS_URL: a server whose chat template knows tools. Run by
// scripts/serve_clients.sh.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {createOpenAI} from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import {ChatOpenAI, OpenAIEmbeddings} from '@langchain/openai';
import {OpenAI as LlamaOpenAI, OpenAIEmbedding} from '@llamaindex/openai';
import {Agent, OpenAIResponsesModel, OpenAIChatCompletionsModel, run, setTracingDisabled, tool as agentTool} from '@openai/agents';
import {embedMany, generateText, Output, stepCountIs, streamText, tool as aiTool} from 'ai';
import {Document, Settings, VectorStoreIndex} from 'llamaindex';
import {Ollama} from 'ollama';
import OpenAI from 'openai';
import {z} from 'zod';

const url = process.env.ORIEL_TOOLS_URL;
const apiKey = 'secret';
const model = 'any';
const openai = new OpenAI({baseURL: url + '/v1', apiKey, maxRetries: 0});
const question = 'Tell me about a fox.';
const place = z.object({city: z.enum(['Lisbon', 'Oslo'])});
const schema = {type: 'object', additionalProperties: false, required: ['city'],
  properties: {city: {type: 'string', enum: ['Lisbon', 'Oslo']}}};
const isPlace = value => ['Lisbon', 'Oslo'].includes(value.city);
const many = Array.from({length: 300}, (_, i) => `fox ${i}`);

setTracingDisabled(true);

test('openai: responses', async () => {
  const reply = await openai.responses.create({model, input: question, temperature: 0, max_output_tokens: 40});
  assert.ok(reply.output_text.length > 0);
  let text = '';
  for await (const event of openai.responses.stream({model, input: question, temperature: 0, max_output_tokens: 40})) {
    text += event.type === 'response.output_text.delta' ? event.delta : '';
  }
  assert.equal(text, reply.output_text);
  const form = {type: 'json_schema', name: 'place', strict: true, schema};
  const parsed = await openai.responses.parse({model, input: question, max_output_tokens: 100, text: {format: form}});
  assert.ok(isPlace(JSON.parse(parsed.output_text)));
  await assert.rejects(openai.responses.create({model, input: 'x', previous_response_id: 'resp_1'}),
    error => error.status === 400 && error.param === 'previous_response_id' && error.requestID.startsWith('req_'));
});

test('openai: calls and their results in responses', async () => {
  const tools = [{type: 'function', name: 'look', strict: true, parameters: schema}];
  const first = await openai.responses.create({model, input: question, tools, tool_choice: 'required',
    max_output_tokens: 200});
  const call = first.output.find(item => item.type === 'function_call');
  assert.ok(isPlace(JSON.parse(call.arguments)));
  const second = await openai.responses.create({model, tools, max_output_tokens: 20, input: [
    {role: 'user', content: question}, ...first.output,
    {type: 'function_call_output', call_id: call.call_id, output: 'Sunny.'}]});
  assert.ok(second.usage.input_tokens_details.cached_tokens > 0);
});

for (const [name, choose] of [['responses', each => each(model)], ['chat', each => each.chat(model)]]) {
  test(`ai: ${name}`, async () => {
    const served = choose(createOpenAI({baseURL: url + '/v1', apiKey}));
    const common = {model: served, prompt: question, temperature: 0, maxRetries: 0};
    const whole = await generateText({...common, maxOutputTokens: 40});
    assert.ok(whole.text.length > 0);
    let text = '';
    for await (const delta of streamText({...common, maxOutputTokens: 40}).textStream) text += delta;
    assert.equal(text, whole.text);
    let asked = null;
    const look = aiTool({inputSchema: place, execute: input => { asked = input; return 'Sunny.'; }});
    await generateText({...common, maxOutputTokens: 200, tools: {look}, toolChoice: 'required', stopWhen: stepCountIs(2)});
    assert.ok(isPlace(asked));
    const formed = await generateText({...common, maxOutputTokens: 200, output: Output.object({schema: place})});
    assert.ok(isPlace(formed.output));
  });
}

test('ai: more embeddings than fit into one request elsewhere', async () => {
  const served = createOpenAI({baseURL: url + '/v1', apiKey});
  const {embeddings} = await embedMany({model: served.embedding(model), values: many, maxRetries: 0});
  assert.equal(embeddings.length, many.length);
});

for (const useResponsesApi of [false, true]) {
  test(`@langchain/openai: ${useResponsesApi ? 'responses' : 'chat'}`, async () => {
    const chat = new ChatOpenAI({model, apiKey, useResponsesApi, temperature: 0, maxTokens: 200, maxRetries: 0,
      configuration: {baseURL: url + '/v1'}});
    const whole = await chat.invoke(question);
    assert.ok(whole.text.length > 0);
    let text = '';
    for await (const chunk of await chat.stream(question)) text += chunk.text;
    assert.equal(text, whole.text);
    // z.record writes a keyword, propertyNames, that not every schema can be held to.
    const bound = chat.bindTools([{name: 'look', description: 'Looks', schema: z.object({all: z.record(z.string(), z.any())})}]);
    assert.ok((await bound.invoke(question)).text.length > 0);
    assert.ok(isPlace(await chat.withStructuredOutput(place, {method: 'jsonSchema'}).invoke(question)));
  });
}

test('@langchain/openai: embeddings', async () => {
  const embeddings = new OpenAIEmbeddings({model, apiKey, maxRetries: 0, configuration: {baseURL: url + '/v1'}});
  assert.equal((await embeddings.embedDocuments(many)).length, many.length);
});

test('llamaindex', async () => {
  const common = {model: 'gpt-4o', apiKey, baseURL: url + '/v1', maxRetries: 0};
  Settings.llm = new LlamaOpenAI({...common, temperature: 0, maxTokens: 20});
  Settings.embedModel = new OpenAIEmbedding({...common, model: 'text-embedding-3-small'});
  const reply = await Settings.llm.chat({messages: [{role: 'user', content: question}]});
  assert.ok(reply.message.content.length > 0);
  const index = await VectorStoreIndex.fromDocuments(many.map(text => new Document({text})));
  const found = await index.asRetriever({similarityTopK: 2}).retrieve({query: 'fox 7'});
  assert.equal(found.length, 2);
});

for (const Kind of [OpenAIResponsesModel, OpenAIChatCompletionsModel]) {
  test(`@openai/agents: ${Kind.name}`, async () => {
    let asked = null;
    const look = agentTool({name: 'look', description: 'Looks', parameters: place,
      execute: input => { asked = input; return 'Sunny.'; }});
    const settings = {temperature: 0, maxTokens: 200};
    const agent = new Agent({name: 'one', instructions: 'Answer.', model: new Kind(openai, model), tools: [look],
      modelSettings: {...settings, toolChoice: 'required'}, toolUseBehavior: 'stop_on_first_tool'});
    assert.equal((await run(agent, question)).finalOutput, 'Sunny.');
    assert.ok(isPlace(asked));
    // Tools and a type for the answer at once.
    const typed = new Agent({name: 'two', instructions: 'Answer.', model: new Kind(openai, model), tools: [look],
      outputType: place, modelSettings: settings});
    assert.ok(isPlace((await run(typed, question, {maxTurns: 8})).finalOutput));
  });
}

test('ollama', async () => {
  const ollama = new Ollama({host: url, headers: {Authorization: 'Bearer ' + apiKey}});
  const messages = [{role: 'user', content: question}];
  const options = {temperature: 0, num_predict: 200};
  const whole = await ollama.chat({model, messages, options});
  assert.ok(whole.message.content.length > 0 && whole.done);
  let text = '';
  for await (const part of await ollama.chat({model, messages, options, stream: true})) text += part.message.content;
  assert.equal(text, whole.message.content);
  assert.equal((await ollama.generate({model, prompt: question, options})).response, text);
  const formed = await ollama.chat({model, messages, options, format: schema});
  assert.ok(isPlace(JSON.parse(formed.message.content)));
  const tools = [{type: 'function', function: {name: 'look', description: 'Looks', parameters: schema}}];
  assert.ok((await ollama.chat({model, messages, options, tools})).done);
  assert.equal((await ollama.embed({model, input: many})).embeddings.length, many.length);
  assert.equal((await ollama.list()).models.length, 1);
  assert.ok((await ollama.show({model})).capabilities.includes('completion'));
  await assert.rejects(ollama.chat({model, messages, options: {top_p: 7}}), /top_p must be/);
});

test('@anthropic-ai/sdk', async () => {
  const anthropic = new Anthropic({baseURL: url, apiKey, maxRetries: 0});
  const messages = [{role: 'user', content: question}];
  const common = {model, messages, max_tokens: 200, temperature: 0};
  const whole = await anthropic.messages.create(common);
  assert.ok(whole.content[0].text.length > 0 && whole.usage.output_tokens > 0);
  const streamed = await anthropic.messages.stream(common).finalMessage();
  assert.deepEqual(streamed.content[0].text, whole.content[0].text);
  assert.equal(streamed.stop_reason, whole.stop_reason);
  const tools = [{name: 'look', description: 'Looks', input_schema: schema}];
  const called = await anthropic.messages.stream({...common, tools, tool_choice: {type: 'any'}}).finalMessage();
  const use = called.content.find(block => block.type === 'tool_use');
  assert.ok(called.stop_reason === 'tool_use' && isPlace(use.input));
  const after = await anthropic.messages.create({...common, tools, messages: [...messages,
    {role: 'assistant', content: called.content},
    {role: 'user', content: [{type: 'tool_result', tool_use_id: use.id, content: 'Sunny.'}]}]});
  assert.ok(after.usage.cache_read_input_tokens > 0);
  assert.ok((await anthropic.messages.countTokens({model, messages})).input_tokens > 0);
  await assert.rejects(anthropic.messages.create({...common, temperature: 7}),
    error => error instanceof Anthropic.BadRequestError && error.requestID.startsWith('req_'));
});
