// One instance of the library with at most one model, and all calls of the C API: of the WebAssembly module, or of the
// Node addon. Calls block the thread of worker.js.
'use strict';

const { hostOf } = require('./host.js');
const { OrielFailure, whole, wholeText, jsonOf, camel, parse, settingsOf, flagsOf, oneOf, unsigned, decode, bytesFrom } = require('./values.js');

const PAGE = 65536;
const MODULE_BYTES = 4 << 20;        // code's data and the caller's stack: INITIAL_MEMORY in CMakeLists.txt
const THREAD_BYTES = 512 << 10;      // stack and bookkeeping of a worker
const BORROWED_BYTES = 32 << 20;     // temporary memory of calls: headers of files, long texts
const MOST_PAGES = 65535;            // a 32-bit memory without its last page, whose end is not a 32-bit address
const MOST_BYTES = MOST_PAGES * PAGE;
/** The largest plan: with the module, 64 threads and borrowed memory it fills the addresses. */
const MOST_PLAN_BYTES = MOST_BYTES - MODULE_BYTES - 64 * THREAD_BYTES - BORROWED_BYTES;
const MOST_NUMBER = 2 ** 53;         // a double holds every position up to there
const JSON_BYTES = 16384;            // first room for a description
const STOPS = ['length', 'token', 'callback', 'cancelled', 'text'];
const PARTS = ['text', 'thought', 'call', 'arguments', 'callEnd', 'string', 'literal', 'valueEnd'];
const POOLINGS = { auto: 0, mean: 1, last: 2, first: 3 };
const EMBED_KINDS = { text: 0, query: 8, document: 16 };
const LEVELS = { none: 0, scratch: 1, weights: 2, cache: 3, all: 4 };
const RESTORED = ['exactly', 'carried', 'read'];
const TO_POSITION = 0;
const BY_TURNS = 1;
const TO_MARK = 2;
const TEXT_FLAGS = { special: 1, bos: 2 };
const RENDER_PROMPT = 4;
const TOO_SMALL = 11;
const CANCELLED = 10;

/** The module's functions. All return addresses, counts or statuses, never a negative number. */
function callsOf(module) {
  const calls = {};
  for (const name of Object.keys(module)) {
    if (name[0] === '_' && typeof module[name] === 'function') calls[name] = (...args) => unsigned(module[name](...args));
  }
  return calls;
}

/** Memory of the module. The addon's (native.js) has the same functions. */
class ModuleMemory {
  pointerBytes = 4;
  /** Bytes of the largest block, and of the largest plan. */
  mostBytes = 2 ** 32 - 1;
  mostPlanBytes = MOST_PLAN_BYTES;

  constructor(memory) {
    this.memory = memory;
  }
  /** A copy. */
  read(at, bytes) {
    return new Uint8Array(this.memory.buffer).slice(at, at + bytes);
  }
  write(at, data) {
    new Uint8Array(this.memory.buffer).set(data, at);
  }
  /** A text that ends in NUL, or has `bytes`. */
  text(at, bytes = new Uint8Array(this.memory.buffer).indexOf(0, at) - at) {
    return decode(this.read(at, bytes));
  }
  size() {
    return { wasmBytes: this.memory.buffer.byteLength };
  }
}

class Engine {
  /** `calls`: functions by name, whose results are addresses, counts or statuses. */
  constructor(calls, memory) {
    this.m = calls;
    this.memory = memory;
    this.model = 0;
    this.sessions = new Map();
    this.lastError = '';
    this.hooks = {};
    this.numbers = {};    // fields of the call's result
    this.known = new Set();
  }

  static onModule(module, memory) {
    return new Engine(callsOf(module), new ModuleMemory(memory));
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
    engine = Engine.onModule(module, memory);
    return engine.begin(host);
  }

  begin(host) {
    this.host = host;
    for (const { name } of this.optionList()) this.known.add(name);
    return this;
  }

  /** `files`: sources by the names that the library opens; `name`: the model's. */
  useFiles(files, name) {
    this.host.files = files;
    this.name = name;
  }

  // ---- Passing values ----

  fail(status, line) {
    throw new OrielFailure(status, line || this.lastError || this.text(this.m._oriel_status_text(status)));
  }

  /** A line of the library with option names as JavaScript writes them. */
  spoken(line) {
    return line.replace(/"[a-z0-9_]+"/g, (name) => (this.known.has(name.slice(1, -1)) ? camel(name) : name));
  }

  /** An address or a size_t in memory. */
  word(at) {
    const bytes = this.memory.read(at, this.memory.pointerBytes);
    const view = new DataView(bytes.buffer);
    return bytes.length === 4 ? view.getUint32(0, true) : Number(view.getBigUint64(0, true));
  }

  /** A text that ends in NUL, or has `bytes`. */
  text(at, bytes) {
    return this.memory.text(at, bytes);
  }

  allocate(bytes) {
    const at = bytes <= this.memory.mostBytes ? this.m._malloc(Math.max(bytes, 8)) : 0;
    if (at === 0) throw new OrielFailure(6, 'no memory left for a text or a picture: give a smaller one or more memory');
    return at;
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
    const at = keep(this.allocate(data.byteLength + 1));
    this.memory.write(at, data);
    this.memory.write(at + data.byteLength, new Uint8Array(1));
    return at;
  }

  textIn(text, keep) {
    const data = new TextEncoder().encode(wholeText(text));
    return { at: this.bytesIn(data, keep), bytes: data.byteLength };
  }

  /** A text that ends in NUL there. */
  nameIn(text, keep) {
    if (wholeText(text).includes('\0')) throw new OrielFailure(1, `${JSON.stringify(text)} has a NUL in it: check where it comes from`);
    return this.textIn(text, keep).at;
  }

  /** An array of pointers to texts. */
  textsIn(texts, keep) {
    const addresses = texts.map((text) => this.nameIn(text, keep));
    const pointers = this.memory.pointerBytes === 4 ? Uint32Array.from(addresses) : BigUint64Array.from(addresses, BigInt);
    return this.bytesIn(new Uint8Array(pointers.buffer), keep);
  }

  /** Arguments of a call: an array of oriel_setting, and its length. */
  settingsIn(options, keep) {
    const texts = settingsOf(options);
    for (let i = 0; i < texts.length; i += 2) this.known.add(texts[i]);
    return [this.textsIn(texts, keep), texts.length / 2];
  }

  idsIn(ids, keep) {
    const data = Int32Array.from(ids, (id) => whole('an id', id, -(2 ** 31), 2 ** 31 - 1));
    return this.bytesIn(new Uint8Array(data.buffer), keep);
  }

  /** fill(at, capacity, needed) -> status, for elements of `size` bytes: a copy of them. `guess`: elements of the first try. */
  filled(size, fill, guess = 0) {
    return this.with((keep) => {
      const needed = keep(this.allocate(8));
      for (let capacity = guess; ;) {
        const at = capacity > 0 ? keep(this.allocate(capacity * size)) : 0;
        const status = fill(at, capacity, needed);
        const count = this.word(needed);
        if (status === 0 && count <= capacity) return this.memory.read(at, count * size);
        if ((status !== 0 && status !== TOO_SMALL) || count <= capacity) this.fail(status);
        capacity = count;
      }
    });
  }

  /** As `filled`, of a JSON text. */
  described(fill) {
    return parse(decode(this.filled(1, fill, JSON_BYTES)).replace(/\0$/, ''));
  }

  optionList() {
    return this.described((...to) => this.m._oriel_option_list(...to)).options;
  }

  /** call(place) -> status, of a call that makes an object: the object's address. */
  made(call) {
    return this.with((keep) => {
      const place = keep(this.allocate(8));
      this.check(call(place));
      return this.word(place);
    });
  }

  /** The numbers that a call reports. */
  reported(call) {
    this.numbers = {};
    this.lastError = '';
    this.check(call());
    return this.numbers;
  }

  // ---- Model ----

  plan(options) {
    return this.with((keep) => {
      const name = this.nameIn(this.name, keep);
      const settings = this.settingsIn(options, keep);
      const plan = this.described((...to) => this.m._web_plan_describe(name, ...settings, ...to));
      const most = this.memory.mostPlanBytes;
      return plan.memoryBytes > most ? this.plan({ ...options, memory: most }) : plan;
    });
  }

  describeFile() {
    return this.with((keep) => {
      const name = this.nameIn(this.name, keep);
      return this.described((...to) => this.m._web_file_describe(name, ...to));
    });
  }

  load(options) {
    return this.with((keep) => {
      const name = this.nameIn(this.name, keep);
      const settings = this.settingsIn(options, keep);
      this.model = this.made((place) => this.m._web_model_load(name, ...settings, place));
      return { plan: this.describe().plan, version: this.text(this.m._oriel_version()) };
    });
  }

  describe() {
    return this.described((...to) => this.m._oriel_model_describe(this.model, ...to));
  }

  tokenize(text, options = {}) {
    const flags = flagsOf(options, TEXT_FLAGS);
    return this.with((keep) => {
      const from = this.textIn(text, keep);
      const data = this.filled(4, (...to) => this.m._oriel_tokenize(this.model, from.at, from.bytes, flags, ...to));
      return Array.from(new Int32Array(data.buffer));
    });
  }

  detokenize(ids, options = {}) {
    const flags = flagsOf(options, { special: TEXT_FLAGS.special });
    return this.with((keep) => {
      const from = this.idsIn(ids, keep);
      return decode(this.filled(1, (...to) => this.m._oriel_detokenize(this.model, from, ids.length, flags, ...to)));
    });
  }

  render(messages, { generationPrompt = true, ...options } = {}) {
    return this.with((keep) => {
      const from = this.textIn(jsonOf(messages), keep);
      const settings = this.settingsIn(options, keep);
      const flags = generationPrompt ? RENDER_PROMPT : 0;
      return decode(this.filled(1, (...to) => this.m._web_render(this.model, ...settings, from.at, from.bytes, flags, ...to)));
    });
  }

  describeSnapshot(data) {
    const bytes = bytesFrom(data);
    return this.with((keep) => {
      const at = this.bytesIn(bytes, keep);
      return this.described((...to) => this.m._web_snapshot_describe(at, bytes.byteLength, ...to));
    });
  }

  /** `id`: a session, or null to remove the prefix. */
  setPrefix(id) {
    this.lastError = '';
    this.check(this.m._oriel_prefix_set(this.model, id === null ? 0 : this.session(id)));
  }

  /** Gives memory back until resume(). `folder`: where the level 'cache' keeps the sessions' caches. */
  trim(level, folder) {
    const which = oneOf('level', level, LEVELS);
    this.with((keep) => this.check(this.native('_oriel_trim')(this.model, which, folder === undefined ? 0 : this.nameIn(folder, keep))));
  }
  /** Stops replies between two tokens until resume(). */
  pause() {
    this.lastError = '';
    this.check(this.native('_oriel_pause')(this.model));
  }
  resume() {
    this.lastError = '';
    this.check(this.native('_web_resume')(this.model));
  }

  /** Frees the model. Its sessions are gone. */
  free() {
    if (this.model && this.m._oriel_model_free) this.m._oriel_model_free(this.model);
    this.model = 0;
  }

  /** A function that the addon alone has. */
  native(name) {
    if (!this.m[name]) throw new OrielFailure(4, 'WebAssembly keeps its memory and one device: this needs the native addon');
    return this.m[name];
  }

  // ---- Session ----

  /** Takes over a model or a session of another engine in this process. */
  attach({ model, session }) {
    this.model = model;
    if (session) this.sessions.set(session.id, { at: session.at, system: session.system });
  }

  /** `system`: a message that the session begins with, also after a reset. */
  createSession(id, { system, ...options }) {
    this.with((keep) => {
      const settings = this.settingsIn(options, keep);
      this.sessions.set(id, { at: this.made((place) => this.m._web_session_create(this.model, ...settings, place)), system });
    });
    try {
      this.addSystem(id);
    } catch (error) {
      this.destroySession(id);
      throw error;
    }
  }

  fork(id, fork) {
    this.lastError = '';
    const from = this.session(id);
    const made = { ...this.sessions.get(id), at: this.made((place) => this.m._oriel_session_fork(from, place)) };
    this.sessions.set(fork, made);
    return made;
  }
  /** Another engine has taken it over. */
  leave(id) {
    this.sessions.delete(id);
  }

  addSystem(id) {
    const { system } = this.sessions.get(id);
    if (system !== undefined) this.add(id, { role: 'system', content: system });
  }

  destroySession(id) {
    const session = this.sessions.get(id);
    if (!session) return;
    this.m._oriel_session_destroy(session.at);
    this.sessions.delete(id);
  }

  session(id) {
    const session = this.sessions.get(id);
    if (!session) throw new OrielFailure(12, 'the session was disposed of: make another');
    return session.at;
  }

  /** `pictures`: {data, width, height}, for parts {type: 'image', picture: number} of the message. */
  add(id, message, pictures = []) {
    this.with((keep) => {
      const json = this.textIn(jsonOf(message), keep);
      const status = pictures.length === 0
        ? this.m._oriel_chat_add(this.session(id), 0, json.at, json.bytes)
        : this.m._oriel_chat_add_pictures(this.session(id), json.at, json.bytes, this.picturesIn(pictures, keep), pictures.length);
      this.check(status);
    });
  }

  /** An array of oriel_picture: an address, two numbers of 32 bits, a size and the order of the bytes. */
  picturesIn(pictures, keep) {
    const word = this.memory.pointerBytes;
    const size = word === 4 ? 20 : 32;
    const view = new DataView(new ArrayBuffer(size * pictures.length));
    pictures.forEach(({ data, width, height }, i) => {
      const at = keep(this.allocate(data.byteLength));
      this.memory.write(at, data);
      if (word === 4) view.setUint32(i * size, at, true);
      else view.setBigUint64(i * size, BigInt(at), true);
      view.setUint32(i * size + word, whole('a width', width, 1, 2 ** 32 - 1), true);
      view.setUint32(i * size + word + 4, whole('a height', height, 1, 2 ** 32 - 1), true);
      view.setUint32(i * size + 2 * word + 8, data.byteLength === width * height * 3 ? 0 : 1, true);
    });
    return this.bytesIn(new Uint8Array(view.buffer), keep);
  }

  append(id, input, options = {}) {
    const flags = flagsOf(options, TEXT_FLAGS);
    this.with((keep) => {
      if (typeof input === 'string') {
        const text = this.textIn(input, keep);
        this.check(this.m._oriel_session_append_text(this.session(id), text.at, text.bytes, flags));
      } else {
        this.check(this.m._web_append(this.session(id), this.idsIn(input, keep), input.length, 0));
      }
    });
  }

  /**
   * Adds messages, if there are any, and generates; `emit` gets events, `cancelled` says whether to
   * stop. A failure before the first token removes the message again, if the session can still go
   * back.
   */
  reply(id, { chat, messages, pictures }, options, emit, cancelled) {
    const session = this.session(id);
    const { position } = this.stats(id);
    const answer = { text: '', thought: '', toolCalls: [], tokenIds: [], logprobs: [] };
    this.hooks.part = (kind, call, at, bytes, path) => {
      const text = this.text(at, bytes);
      const type = PARTS[kind];
      if (type === 'text' || type === 'thought') answer[type] += text;
      if (type === 'call') answer.toolCalls[call] = { name: text, arguments: '', incomplete: true };
      if (type === 'arguments') answer.toolCalls[call].arguments += text;
      if (type === 'callEnd') delete answer.toolCalls[call].incomplete;
      emit({ type, text, ...(path ? { path: this.text(path) } : type in answer ? {} : { call }) });
      return 0;
    };
    this.hooks.token = (tokenId, at, bytes, logprob, topCount, top) => {
      if (!chat && bytes) {  // in a chat parts have the text
        const text = this.text(at, bytes);
        answer.text += text;
        emit({ type: 'text', text });
      }
      answer.tokenIds.push(tokenId);
      if (options.topLogprobs !== undefined) answer.logprobs.push({ id: tokenId, logprob, top: this.topTokens(top, topCount) });
      if (cancelled()) this.m._oriel_session_cancel(session);
      return 0;
    };
    this.hooks.progress = (done, total) => {
      emit({ type: 'reading', done, total });
      return cancelled() ? 1 : 0;
    };
    try {
      return this.with((keep) => {
        const settings = this.settingsIn(options, keep);
        if (messages) this.add(id, messages, pictures);
        this.numbers = {};
        const status = this.m._web_reply(session, chat ? 1 : 0, ...settings);
        const told = this.numbers;
        if (status !== CANCELLED) this.check(status);
        answer.tokenIds.length = Math.min(answer.tokenIds.length, told.tokens);  // the last event may be of held back text
        answer.logprobs.length = Math.min(answer.logprobs.length, told.tokens);
        for (const toolCall of answer.toolCalls) {
          if (!toolCall.incomplete) toolCall.arguments = JSON.parse(toolCall.arguments);
        }
        return { ...answer, ...told, stopReason: status === CANCELLED ? 'cancelled' : STOPS[told.stopReason] };
      });
    } catch (error) {
      const isUnsaid = error instanceof OrielFailure && answer.tokenIds.length === 0 && this.stats(id).position > position;
      if (isUnsaid) this.m._web_go_back(session, TO_POSITION, position, 0, 0);
      throw error;
    } finally {
      this.hooks.token = this.hooks.part = this.hooks.progress = undefined;
    }
  }

  topTokens(at, count) {
    const view = new DataView(this.memory.read(at, 8 * count).buffer);
    return Array.from({ length: count }, (_, i) => ({ id: view.getInt32(8 * i, true), logprob: view.getFloat32(8 * i + 4, true) }));
  }

  /** Appends ids and gives their negative log-likelihoods. */
  score(id, ids) {
    const nll = [];
    this.hooks.logits = (index, at, count) => {
      if (index + 1 < ids.length) {
        const logits = new Float32Array(this.memory.read(at, 4 * count).buffer);
        let most = -Infinity;
        for (let i = 0; i < count; ++i) if (logits[i] > most) most = logits[i];
        let sum = 0;
        for (let i = 0; i < count; ++i) sum += Math.exp(logits[i] - most);
        nll.push(most + Math.log(sum) - logits[ids[index + 1]]);
      }
      return 0;
    };
    try {
      this.with((keep) => this.check(this.m._web_append(this.session(id), this.idsIn(ids, keep), ids.length, 1)));
    } finally {
      this.hooks.logits = undefined;
    }
    return { tokens: ids.length, nll, nllMean: nll.reduce((a, b) => a + b, 0) / Math.max(nll.length, 1) };
  }

  embed(id, text, { pooling = 'auto', kind = 'text', ...options } = {}) {
    const how = oneOf('pooling', pooling, POOLINGS);
    const flags = flagsOf(options, { raw: 1 }) | oneOf('kind', kind, EMBED_KINDS);
    return this.with((keep) => {
      const from = this.textIn(text, keep);
      const data = this.filled(4, (...to) => this.m._oriel_embed(this.session(id), how, flags, from.at, from.bytes, ...to, 0));
      return new Float32Array(data.buffer);
    });
  }

  stats(id) {
    const told = this.reported(() => this.m._web_get_stats(this.session(id)));
    return { ...told, ...this.memory.size() };
  }

  describeSession(id) {
    return this.described((...to) => this.m._oriel_session_describe(this.session(id), ...to));
  }

  tokens(id, first) {
    whole('first', first, 0, MOST_NUMBER);
    const data = this.filled(4, (...to) => this.m._web_get_tokens(this.session(id), first, ...to));
    return Array.from(new Int32Array(data.buffer));
  }

  reset(id) {
    this.lastError = '';
    this.check(this.m._oriel_session_reset(this.session(id)));
    this.addSystem(id);
  }

  /** `to`: a position, {turns} or {mark}. */
  goBack(id, to, options = {}) {
    const flags = flagsOf(options, { readAgain: 1 });
    const { turns, mark } = Object(to);
    const session = this.session(id);
    this.with((keep) => {
      let target = [TO_POSITION, 0, 0];
      if (mark !== undefined) target = [TO_MARK, 0, this.nameIn(mark, keep)];
      else if (turns !== undefined) target = [BY_TURNS, whole('turns', turns, 0, MOST_NUMBER), 0];
      else target[1] = whole('the position', to, 0, MOST_NUMBER);
      this.check(this.m._web_go_back(session, ...target, flags));
    });
  }

  mark(id, name) {
    this.with((keep) => this.check(this.m._oriel_session_mark(this.session(id), this.nameIn(name, keep))));
  }

  /** `adapters`: as the session option; left out: all as loaded. */
  useAdapters(id, adapters) {
    this.with((keep) =>
      this.check(this.m._oriel_session_use_adapters(this.session(id), adapters === undefined ? 0 : this.nameIn(adapters, keep))),
    );
  }

  /** After a lost device. `device`: as the load option; left out: the lost one, then others. */
  recover(id, device) {
    return this.with((keep) => {
      const name = device === undefined ? 0 : this.nameIn(device, keep);
      const told = this.reported(() => this.native('_web_recover')(this.session(id), name));
      return { ...told, exact: told.exact !== 0 };
    });
  }

  save(id) {
    return this.filled(1, (...to) => this.m._oriel_snapshot_save(this.session(id), ...to));
  }

  restore(id, data, options = {}) {
    const flags = flagsOf(options, { exact: 1, read: 2 });
    const bytes = bytesFrom(data);
    return this.with((keep) => {
      const at = this.bytesIn(bytes, keep);
      const told = this.reported(() => this.m._web_snapshot_restore(this.session(id), at, bytes.byteLength, flags));
      return { ...told, how: RESTORED[told.how], rounded: told.rounded !== 0 };
    });
  }

  /** In the OpenAI form, whose names stay. */
  transcript(id) {
    return JSON.parse(decode(this.filled(1, (...to) => this.m._oriel_transcript_export(this.session(id), ...to))).replace(/\0$/, ''));
  }
}

/** The module's memory for a plan, in bytes. */
function memoryFor(plan, threads) {
  const initial = MODULE_BYTES + plan.totalBytes + threads * THREAD_BYTES;
  const maximum = Math.min(initial + plan.kvBytes + BORROWED_BYTES, MOST_BYTES);
  if (initial > MOST_BYTES) throw new OrielFailure(5, 'WebAssembly has 4 GiB of addresses: give less memory');
  return { initial, maximum };
}
const memoryForPlans = { initial: MODULE_BYTES, maximum: 1 << 30 };

/** An engine on the module that `made` describes (browser.js, node.js). */
const startModule = (made, threads, size) => Engine.start({ factory: made, code: made.code, threads, ...size, locate: made.locate, script: made.script });

module.exports = { Engine, memoryFor, memoryForPlans, startModule };
