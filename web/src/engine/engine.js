// One instance of the module with at most one model: every call of the C API that the package makes, on the thread that
// it blocks. worker.js is its only user.
'use strict';

const { hostOf } = require('./host.js');
const { Structs } = require('./structs.js');
const { OrielFailure, whole, wholeText, jsonOf, unsigned, decode, bytesFrom } = require('./values.js');

const PAGE = 65536;
const MODULE_BYTES = 4 << 20;        // code's data and the caller's stack: INITIAL_MEMORY in CMakeLists.txt
const THREAD_BYTES = 512 << 10;      // stack and bookkeeping of a worker
const BORROWED_BYTES = 32 << 20;     // what calls borrow: headers of files, long texts
const MOST_PAGES = 65535;            // of 32 bits, but for the last: its end is no 32-bit address
const MOST_BYTES = MOST_PAGES * PAGE;
/** The most that a plan may have: with the module, 64 threads and what calls borrow it is all that can be addressed. */
const MOST_PLAN_BYTES = MOST_BYTES - MODULE_BYTES - 64 * THREAD_BYTES - BORROWED_BYTES;
const MOST_TOKENS = 2 ** 53;         // a double holds every position up to there
const FORMATS = { auto: 0, f16: 1, int8: 2, int4: 3 };
const SIDES = { f16: 'f16', k8: 'int8', k4: 'int4', v8: 'int8', v4: 'int4' };
const STOPS = ['length', 'token', 'callback', 'cancelled', 'text'];
const LAYERS = ['session', 'sliding', 'convolution', 'state'];
const PARTS = ['text', 'thought', 'call', 'arguments', 'callEnd'];
const FLAG_SPECIAL = 1;
const FLAG_BOS = 2;

/** '300MB', '300MiB' or a number of bytes. */
function bytesOf(size) {
  if (size === undefined || size === null) return undefined;
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:([kMG])(i?)B|B)?\s*$/.exec(String(size));
  const power = match && match[2] ? ' kMG'.indexOf(match[2]) : 0;
  const bytes = match ? Number(match[1]) * (match[3] ? 1024 : 1000) ** power : NaN;
  if (bytes >= 1 || bytes === 0) return Math.floor(bytes);
  throw new OrielFailure(1, `${size} is no size: write 262144, 300MB or 300MiB`);
}

function formatsOf(kv) {
  if (kv === undefined || kv === 'auto') return [undefined, undefined];
  const match = /^(?:(f16)|(k[48])(v[48]))$/.exec(kv);
  if (!match) throw new OrielFailure(1, `${kv} is no cache format: write auto, f16, k8v8, k8v4 or k4v4`);
  return match[1] ? [FORMATS.f16, FORMATS.f16] : [FORMATS[SIDES[match[2]]], FORMATS[SIDES[match[3]]]];
}

/** 0 is a wish here, and the library's default there. */
const orAll = (value, ofZero) => (value === 0 ? ofZero : value);

/** The module's functions. All return addresses, counts or statuses, never a negative number. */
function callsOf(module) {
  const calls = {};
  for (const name of Object.keys(module)) {
    if (name[0] === '_' && typeof module[name] === 'function') calls[name] = (...args) => unsigned(module[name](...args));
  }
  return calls;
}

class Engine {
  constructor(module, memory) {
    this.m = callsOf(module);
    this.memory = memory;
    this.structs = new Structs(this.m, () => memory.buffer);
    this.model = 0;
    this.sessions = new Map();
    this.lastError = '';
    this.hooks = {};
  }

  /** `code` is a compiled WebAssembly.Module; `size` {initial, maximum} in bytes. */
  static async start({ factory, code, threads, initial, maximum, locate, script }) {
    const pages = (bytes) => Math.min(MOST_PAGES, Math.ceil(bytes / PAGE));
    const memory = new WebAssembly.Memory({
      initial: pages(initial), maximum: pages(maximum), ...(factory.shared ? { shared: true } : {}),
    });
    let engine;
    const host = hostOf(memory, () => engine);
    const module = await factory.create({
      wasmMemory: memory,
      INITIAL_MEMORY: pages(initial) * PAGE,
      orielWorkers: Math.max(threads - 1, 0),
      orielHost: host,
      locateFile: locate,
      mainScriptUrlOrBlob: script,
      print: () => {},
      printErr: () => {},
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(code, imports).then((instance) => done(instance, code));
        return {};
      },
    });
    engine = new Engine(module, memory);
    engine.host = host;
    return engine;
  }

  useSource(source, name) {
    this.host.source = source;
    this.host.name = name;
  }

  // ---- Passing values ----

  fail(status, line) {
    const s = this.structs;
    throw new OrielFailure(status, line || this.lastError || s.text(this.m._oriel_status_text(status)));
  }

  /** Frees what body() allocated through `keep` when it is over. */
  with(body) {
    const taken = [];
    const keep = (at) => {
      taken.push(at);
      return at;
    };
    this.lastError = '';
    try {
      return body(keep);
    } finally {
      for (const at of taken) this.m._free(at);
    }
  }

  check(status) {
    if (status !== 0) this.fail(status);
  }

  bytesIn(data, keep) {
    const at = keep(this.structs.allocate(data.byteLength + 1));
    const memory = new Uint8Array(this.memory.buffer);
    memory.set(data, at);
    memory[at + data.byteLength] = 0;
    return at;
  }

  textIn(text, keep) {
    const data = new TextEncoder().encode(wholeText(text));
    return { at: this.bytesIn(data, keep), bytes: data.byteLength };
  }

  /** Of a text that ends in NUL there. */
  nameIn(text, keep) {
    if (wholeText(text).includes('\0')) throw new OrielFailure(1, `${JSON.stringify(text)} has a NUL in it: check where it comes from`);
    return this.textIn(text, keep).at;
  }

  /** Of a text that is JSON, or of a value that becomes some. */
  jsonIn(value, keep) {
    return value === undefined ? {} : this.textIn(typeof value === 'string' ? value : jsonOf(value), keep);
  }

  idsIn(ids, keep) {
    const data = Int32Array.from(ids, (id) => whole('an id', id, -(2 ** 31), 2 ** 31 - 1));
    return this.bytesIn(new Uint8Array(data.buffer), keep);
  }

  /** fill(at, capacity, needed) -> status, of elements with so many bytes: a copy of what was filled. */
  filled(size, fill) {
    return this.with((keep) => {
      const needed = keep(this.structs.make('oriel_view'));
      let status = fill(0, 0, needed);
      const count = this.structs.view().getUint32(needed, true);
      if (status !== 0 && status !== 11) this.fail(status);
      if (count === 0) return new Uint8Array(0);
      const at = keep(this.structs.allocate(count * size));
      status = fill(at, count, needed);
      this.check(status);
      return new Uint8Array(this.memory.buffer).slice(at, at + count * size);
    });
  }

  // ---- Model ----

  modelOptions(options, keep) {
    const [k, v] = formatsOf(options.kv);
    const system = options.systemPrompt === undefined ? null : this.textIn(options.systemPrompt, keep);
    return keep(this.structs.make('oriel_options', {
      memoryBytes: Math.min(bytesOf(options.memory), MOST_PLAN_BYTES),
      windowTokens: options.window === 'max' ? 0xffffffff : options.window,
      minWindowTokens: options.minWindow,
      sinkTokens: orAll(options.sinks, 0xffffffff),
      pinnedTokens: options.pinned,
      chunkTokens: options.chunk,
      kFormat: k,
      vFormat: v,
      device: 2,  // the CPU
      cpuThreads: options.threads,
      calibrationFile: this.nameIn('', keep),
      constraints: options.constraints ? 1 : 0,
      sessions: options.sessions,
      prefixTokens: options.prefixTokens,
      systemPrompt: system && system.at,
      systemPromptBytes: system && system.bytes,
      transcriptBytes: bytesOf(options.transcript),
      log: this.m._web_on_log(),
      progress: this.m._web_on_progress(),
    }));
  }

  readPlan(at) {
    const plan = this.structs.read('oriel_plan', at);
    plan.fits = plan.fits !== 0;
    plan.choices.length = plan.choiceCount;
    plan.groups.length = plan.groupCount;
    const names = ['auto', 'f16', 'int8', 'int4'];
    for (const choice of [plan, ...plan.choices]) {
      choice.kv = choice.kFormat === 1 && choice.vFormat === 1 ? 'f16'
        : `k${choice.kFormat === 2 ? 8 : 4}v${choice.vFormat === 2 ? 8 : 4}`;
      choice.kFormat = names[choice.kFormat];
      choice.vFormat = names[choice.vFormat];
    }
    for (const choice of plan.choices) choice.fits = choice.fits !== 0;
    for (const group of plan.groups) group.kind = LAYERS[group.kind];
    return plan;
  }

  plan(options) {
    return this.with((keep) => {
      const plan = keep(this.structs.make('oriel_plan'));
      const name = this.nameIn(this.host.name, keep);
      this.check(this.m._oriel_plan_file(name, this.modelOptions(options, keep), plan));
      return this.readPlan(plan);
    });
  }

  load(options) {
    return this.with((keep) => {
      const place = keep(this.structs.allocate(8));
      const name = this.nameIn(this.host.name, keep);
      this.check(this.m._oriel_model_load(name, this.modelOptions(options, keep), place));
      this.model = this.structs.view().getUint32(place, true);
      const plan = keep(this.structs.make('oriel_plan'));
      const info = keep(this.structs.make('oriel_model_info'));
      this.check(this.m._oriel_model_get_plan(this.model, plan));
      this.check(this.m._oriel_model_get_info(this.model, info));
      const told = this.structs.read('oriel_model_info', info);
      told.groups.length = told.groupCount;
      for (const group of told.groups) group.kind = LAYERS[group.kind];
      return { plan: this.readPlan(plan), info: told, version: this.structs.text(this.m._oriel_version()) };
    });
  }

  free() {
    for (const id of [...this.sessions.keys()]) this.destroySession(id);
    if (this.model) this.m._oriel_model_free(this.model);
    this.model = 0;
  }

  tokenize(text, { special = false, bos = false } = {}) {
    return this.with((keep) => {
      const from = this.textIn(text, keep);
      const flags = (special ? FLAG_SPECIAL : 0) | (bos ? FLAG_BOS : 0);
      const data = this.filled(4, (at, capacity, needed) =>
        this.m._oriel_tokenize(this.model, from.at, from.bytes, flags, at, capacity, needed));
      return Array.from(new Int32Array(data.buffer));
    });
  }

  detokenize(ids, { special = false } = {}) {
    return this.with((keep) => {
      const from = this.idsIn(ids, keep);
      const data = this.filled(1, (at, capacity, needed) =>
        this.m._oriel_detokenize(this.model, from, ids.length, special ? FLAG_SPECIAL : 0, at, capacity, needed));
      return decode(data);
    });
  }

  render(messages, options = {}) {
    return this.with((keep) => {
      const from = this.textIn(jsonOf(messages), keep);
      const chat = this.chatOptions(options, keep);
      const prompt = options.generationPrompt === false ? 0 : 1;
      const data = this.filled(1, (at, capacity, needed) =>
        this.m._oriel_render_json(this.model, chat, from.at, from.bytes, prompt, at, capacity, needed));
      return decode(data).replace(/\0$/, '');
    });
  }

  inspectSnapshot(data) {
    const bytes = bytesFrom(data);
    return this.with((keep) => {
      const info = keep(this.structs.make('oriel_snapshot_info'));
      const at = this.bytesIn(bytes, keep);
      this.check(this.m._oriel_snapshot_inspect(at, bytes.byteLength, this.m._web_on_log(), 0, info));
      return this.structs.read('oriel_snapshot_info', info);
    });
  }

  // ---- Session ----

  chatOptions(options, keep) {
    const [tools, documents, variables] = [options.tools, options.documents, options.variables].map((value) => this.jsonIn(value, keep));
    return keep(this.structs.make('oriel_chat_options', {
      chatTemplate: options.template && this.nameIn(options.template, keep),
      noThinking: options.thinking === false ? 1 : 0,
      thinking: options.thinking === true ? 1 : 0,
      date: options.date,
      tools: tools.at, toolsBytes: tools.bytes,
      documents: documents.at, documentsBytes: documents.bytes,
      variables: variables.at, variablesBytes: variables.bytes,
    }));
  }

  /** Begins with a system message, where one is given, and so does each reset. */
  createSession(id, { system, ...options }) {
    const texts = [];  // stay until the session is destroyed
    const keepTexts = (at) => {
      texts.push(at);
      return at;
    };
    try {
      this.with((keep) => {
        const session = keep(this.structs.make('oriel_session_options', {
          splitTurns: options.splitTurns ? 1 : 0,
          forgetEvicted: options.forgetEvicted ? 1 : 0,
          chat: this.chatOptions(options, keepTexts),
          progress: this.m._web_on_progress(),
        }));
        const place = keep(this.structs.allocate(8));
        this.check(this.m._oriel_session_create(this.model, session, place));
        this.sessions.set(id, { at: this.structs.view().getUint32(place, true), texts, system });
      });
    } catch (error) {
      for (const at of texts) this.m._free(at);
      throw error;
    }
    try {
      this.addSystem(id);
    } catch (error) {
      this.destroySession(id);
      throw error;
    }
  }

  addSystem(id) {
    const { system } = this.sessions.get(id);
    if (system !== undefined) this.add(id, { role: 'system', content: system });
  }

  destroySession(id) {
    const session = this.sessions.get(id);
    if (!session) return;
    this.m._oriel_session_destroy(session.at);
    for (const at of session.texts) this.m._free(at);
    this.sessions.delete(id);
  }

  session(id) {
    const session = this.sessions.get(id);
    if (!session) throw new OrielFailure(12, 'the session was disposed of: make another');
    return session.at;
  }

  add(id, message) {
    this.with((keep) => {
      const json = this.textIn(jsonOf(message), keep);
      this.check(this.m._oriel_chat_add_json(this.session(id), json.at, json.bytes));
    });
  }

  append(id, input, { special = false, bos = false } = {}) {
    this.with((keep) => {
      if (typeof input === 'string') {
        const text = this.textIn(input, keep);
        const flags = (special ? FLAG_SPECIAL : 0) | (bos ? FLAG_BOS : 0);
        this.check(this.m._oriel_session_append_text(this.session(id), text.at, text.bytes, flags));
      } else {
        this.check(this.m._oriel_session_append(this.session(id), this.idsIn(input, keep), input.length));
      }
    });
  }

  generateOptions(options, keep) {
    const schema = this.jsonIn(options.schema, keep);
    const grammar = options.grammar === undefined ? {} : this.textIn(options.grammar, keep);
    const stops = [].concat(options.stop || []).map((text) => this.nameIn(text, keep));
    const choices = { free: 0, checked: 1, required: 2, none: 3 };
    const choice = options.toolChoice === undefined ? 0 : choices[options.toolChoice];
    if (choice === undefined) throw new OrielFailure(1, 'toolChoice is free, checked, required or none');
    return keep(this.structs.make('oriel_generate_options', {
      maxTokens: options.maxTokens,
      greedy: options.greedy ? 1 : 0,
      seed: options.seed,
      temperature: orAll(options.temperature, 1e-6),
      topK: orAll(options.topK, 0xffffffff),
      topP: options.topP,
      minP: orAll(options.minP, -1),
      repeatPenalty: options.repeatPenalty,
      presencePenalty: options.presencePenalty,
      frequencyPenalty: options.frequencyPenalty,
      repeatWindow: options.repeatWindow,
      minTokens: options.minTokens,
      ignoreStop: options.ignoreStop ? 1 : 0,
      stop: stops.length ? this.bytesIn(new Uint8Array(Uint32Array.from(stops).buffer), keep) : 0,
      stopCount: stops.length,
      logprobs: options.logprobs || options.topLogprobs ? 1 : 0,
      topLogprobs: options.topLogprobs,
      jsonSchema: schema.at, jsonSchemaBytes: schema.bytes,
      grammar: grammar.at, grammarBytes: grammar.bytes,
      trigger: options.trigger === undefined ? 0 : this.nameIn(options.trigger, keep),
      toolChoice: choice,
      onPart: this.m._web_on_part(),
    }));
  }

  /**
   * Adds messages, if there are any, and generates; `emit` gets events, `cancelled` says whether to stop. What fails
   * before the first token leaves no message behind, where the session can still go back.
   */
  reply(id, { chat, messages }, options, emit, cancelled) {
    const session = this.session(id);
    const { position } = this.stats(id);
    const answer = { text: '', thought: '', toolCalls: [], tokenIds: [], logprobs: [] };
    let last = -1;
    this.hooks.part = (at) => {
      const part = this.structs.read('oriel_part', at);
      const text = this.structs.text(part.text, part.textBytes);
      const type = PARTS[part.kind];
      if (type === 'text') answer.text += text;
      if (type === 'thought') answer.thought += text;
      if (type === 'call') answer.toolCalls[part.call] = { name: text, arguments: '', complete: false };
      if (type === 'arguments') answer.toolCalls[part.call].arguments += text;
      if (type === 'callEnd') answer.toolCalls[part.call].complete = true;
      emit({ type, text, ...(part.kind >= 2 ? { call: part.call } : {}) });
      return 0;
    };
    this.hooks.token = (at) => {
      const event = this.structs.read('oriel_token_event', at);
      const text = this.structs.text(event.text, event.textBytes);
      if (!chat) {
        answer.text += text;
        if (text) emit({ type: 'text', text });
      }
      answer.tokenIds.push(event.id);
      last = event.id;
      if (options.logprobs || options.topLogprobs) {
        const top = Array.from({ length: event.topCount }, (_, i) => this.structs.read('oriel_token_logprob', event.top + 8 * i));
        answer.logprobs.push({ id: event.id, logprob: event.logprob, top });
      }
      if (cancelled()) this.m._oriel_session_cancel(session);
      return 0;
    };
    this.hooks.progress = (done, total) => {
      emit({ type: 'reading', done, total });
      return cancelled() ? 1 : 0;
    };
    try {
      return this.with((keep) => {
        const generation = keep(this.structs.make('oriel_generation'));
        const how = this.generateOptions(options, keep);
        const call = chat ? this.m._oriel_chat_reply : this.m._oriel_session_generate;
        if (messages) this.add(id, messages);
        const status = call(session, how, this.m._web_on_token(), 0, generation);
        const told = this.structs.read('oriel_generation', generation);
        if (status !== 0 && status !== 10) this.fail(status);
        if (told.tokens < answer.tokenIds.length) {  // the last event was of held back text
          answer.tokenIds.length = told.tokens;
          answer.logprobs.length = Math.min(answer.logprobs.length, told.tokens);
        }
        for (const toolCall of answer.toolCalls) {
          if (toolCall.complete) toolCall.arguments = JSON.parse(toolCall.arguments);
          else toolCall.incomplete = true;
          delete toolCall.complete;
        }
        return { ...answer, ...told, stopReason: status === 10 ? 'cancelled' : STOPS[told.stopReason], lastId: last };
      });
    } catch (error) {
      if (error instanceof OrielFailure && last < 0 && this.stats(id).position > position) this.m._web_session_rewind(session, position);
      throw error;
    } finally {
      this.hooks.token = this.hooks.part = this.hooks.progress = undefined;
    }
  }

  /** Mean and single negative log-likelihoods of ids behind what the session holds. */
  score(id, ids) {
    const nll = [];
    this.hooks.logits = (index, at, count) => {
      if (index + 1 < ids.length) {
        const logits = new Float32Array(this.memory.buffer, at, count);
        let most = -Infinity;
        for (let i = 0; i < count; ++i) if (logits[i] > most) most = logits[i];
        let sum = 0;
        for (let i = 0; i < count; ++i) sum += Math.exp(logits[i] - most);
        nll.push(most + Math.log(sum) - logits[ids[index + 1]]);
      }
      return 0;
    };
    try {
      this.with((keep) =>
        this.check(this.m._oriel_session_evaluate(this.session(id), this.idsIn(ids, keep), ids.length, this.m._web_on_logits(), 0)));
    } finally {
      this.hooks.logits = undefined;
    }
    return { tokens: ids.length, nll, nllMean: nll.reduce((a, b) => a + b, 0) / Math.max(nll.length, 1) };
  }

  embed(id, text, { normalise = true } = {}) {
    return this.with((keep) => {
      const from = this.textIn(text, keep);
      const options = keep(this.structs.make('oriel_embed_options', { notNormalised: normalise ? 0 : 1 }));
      const data = this.filled(4, (at, capacity, needed) =>
        this.m._oriel_embed(this.session(id), options, from.at, from.bytes, at, capacity, needed, 0));
      return new Float32Array(data.buffer);
    });
  }

  read(id, name, call) {
    return this.with((keep) => {
      const at = keep(this.structs.make(name));
      this.check(this.m[call](this.session(id), at));
      return this.structs.read(name, at);
    });
  }

  stats(id) {
    return { ...this.read(id, 'oriel_stats', '_oriel_session_get_stats'), wasmBytes: this.memory.buffer.byteLength };
  }

  view(id) {
    const view = this.read(id, 'oriel_view', '_oriel_session_get_view');
    const data = this.filled(8, (at, capacity, needed) =>
      this.m._oriel_session_get_turns(this.session(id), at, capacity, needed));
    return { ...view, turns: Array.from(new BigUint64Array(data.buffer), Number) };
  }

  tokens(id, first) {
    whole('first', first, 0, MOST_TOKENS);
    const data = this.filled(4, (at, capacity, needed) =>
      this.m._web_session_get_tokens(this.session(id), first, at, capacity, needed));
    return Array.from(new Int32Array(data.buffer));
  }

  reset(id) {
    this.lastError = '';
    this.check(this.m._oriel_session_reset(this.session(id)));
    this.addSystem(id);
  }

  /** `to`: a position, or {turns}. */
  rewind(id, to) {
    this.lastError = '';
    const session = this.session(id);
    this.check(to && to.turns !== undefined
      ? this.m._oriel_session_rewind_turns(session, whole('turns', to.turns, 0, 2 ** 32 - 1), 0)
      : this.m._web_session_rewind(session, whole('the position', to, 0, MOST_TOKENS)));
  }

  save(id) {
    return this.filled(1, (at, capacity, needed) => this.m._oriel_session_save(this.session(id), at, capacity, needed));
  }

  restore(id, data, { exact = false, read = false } = {}) {
    const bytes = bytesFrom(data);
    return this.with((keep) => {
      const restored = keep(this.structs.make('oriel_restored'));
      const at = this.bytesIn(bytes, keep);
      this.check(this.m._oriel_session_restore_as(this.session(id), at, bytes.byteLength, (exact ? 1 : 0) | (read ? 2 : 0), restored));
      const told = this.structs.read('oriel_restored', restored);
      return { ...told, how: ['exactly', 'carried', 'read'][told.how], rounded: told.rounded !== 0 };
    });
  }

  transcript(id) {
    const data = this.filled(1, (at, capacity, needed) =>
      this.m._oriel_transcript_export(this.session(id), at, capacity, needed));
    return JSON.parse(decode(data).replace(/\0$/, ''));
  }
}

/** What a model with this plan runs in. */
function memoryFor(plan, threads) {
  const initial = MODULE_BYTES + plan.totalBytes + threads * THREAD_BYTES;
  const maximum = Math.min(initial + plan.kvBytes + BORROWED_BYTES, MOST_BYTES);
  if (initial > MOST_BYTES) throw new OrielFailure(5, 'WebAssembly has 4 GiB of addresses: give less memory');
  return { initial, maximum };
}
const memoryForPlans = { initial: MODULE_BYTES, maximum: 1 << 30 };

module.exports = { Engine, memoryFor, memoryForPlans, bytesOf };
