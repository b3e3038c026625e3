// The client, in Node (node.js) and in browsers (index.js). A model lives in a worker of its own, so that nothing here blocks.

export const statusNames = ['ok', 'argument', 'io', 'format', 'unsupported', 'memory-budget', 'out-of-memory', 'no-device',
  'device', 'timeout', 'cancelled', 'buffer-too-small', 'state', 'context', 'text', 'internal', 'speed'];

/** An error as one line "WHAT HAPPENED: WHAT TO DO"; `status` is a name of statusNames, `code` its number. */
export class OrielError extends Error {
  constructor(message, code, plan) {
    super(message);
    this.name = code === 10 ? 'AbortError' : 'OrielError';
    this.code = code;
    this.status = statusNames[code] || 'internal';
    if (plan) this.plan = plan;
  }
}

const ignore = () => {};
const logLevels = { warning: 1, info: 2, debug: 3 };

/** Requests to one worker, and its messages in between. */
class Client {
  constructor(platform, options, settings) {
    this.waiting = new Map();
    this.next = 1;
    this.nextSession = 1;
    this.platform = platform;
    this.options = options;
    this.settings = settings;  // of the workers
    this.shares = platform.shares();
    this.sessions = new Set();  // clients of sessions that have a worker of their own
    this.host = new platform.Host(options.worker);
    this.host.onMessage((message) => this.receive(message));
    this.host.onError((error) => this.end(new OrielError(`the worker failed: ${error && error.message ? error.message : 'check that dist/worker.js can be fetched'}`, 15)));
  }

  static async open(platform, source, options) {
    const level = logLevels[options.logLevel ?? 'warning'];
    if (level === undefined) throw new OrielError(`logLevel is ${JSON.stringify(options.logLevel)}: give warning, info or debug`, 1);
    const wish = Number(options.threads) || Math.min(platform.processors(), 8);
    const addon = platform.addonFor(options);
    const client = new Client(platform, options, {
      threads: platform.shares() ? wish : 1, assets: platform.assets(options.assets), logLevel: options.log ? level : -1, addon,
    });
    try {
      await client.ask('start', { source: platform.place(source), name: nameOf(source), settings: client.settings });
    } catch (error) {
      client.end(error);
      throw error;
    }
    return client;
  }

  /** Options of the library: the client keeps its own. The native library knows how much memory there is. */
  modelOptions({ progress, log, logLevel, assets, worker, engine, ...settings }) {
    if (settings.mmproj) settings.mmproj = this.platform.place(settings.mmproj);
    return { ...settings, memory: settings.memory ?? (this.settings.addon ? undefined : defaultMemory()) };
  }

  /**
   * The client of a session. The addon's calls block a worker, so there each session has its own, and sessions decode side
   * by side. `session`: {id, at, system} of one that another worker made.
   */
  async forSession(session) {
    if (!this.settings.addon) return this;
    if (this.ended) throw this.ended;
    const client = new Client(this.platform, this.options, this.settings);
    this.sessions.add(client);
    await client.ask('attach', { settings: this.settings, model: this.address, session });
    return client;
  }
  endSession(client) {
    if (client === this) return;
    this.sessions.delete(client);
    client.end(new OrielError('the session was disposed of: make another', 12));
  }

  /** `hear` gets the events of this request. */
  ask(call, args, hear) {
    if (this.ended) return Promise.reject(this.ended);
    const id = this.next++;
    try {
      this.host.send({ id, call, args });
    } catch (error) {
      return Promise.reject(new OrielError(`an argument cannot be passed to the worker (${error.message}): give plain values`, 1));
    }
    this.host.ref(true);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, hear }));
  }

  receive(message) {
    if (this.ended) return undefined;
    if (message.event === 'log' || message.event === 'progress') return this.tell(message);
    const request = this.waiting.get(message.id);
    if (!request) return undefined;
    if (message.event) return request.hear && message.values.forEach(request.hear);
    this.waiting.delete(message.id);
    if (this.waiting.size === 0) this.host.ref(false);
    if (message.error) request.reject(new OrielError(message.error.message, message.error.status, message.error.plan));
    else request.resolve(message.value);
    return undefined;
  }

  /** The app's callbacks: exceptions of a log are dropped, exceptions of `progress` end the load. */
  tell(message) {
    try {
      if (message.event === 'log') this.options.log(message.text, message.level);
      else if (this.options.progress) this.options.progress(message);
    } catch (error) {
      if (message.event === 'progress') this.end(error);
    }
  }

  end(error) {
    if (this.ended) return;
    this.ended = error;
    for (const request of this.waiting.values()) request.reject(error);
    this.waiting.clear();
    for (const session of this.sessions) session.end(error);
    this.host.end();
  }
}

const defaultMemory = () => {
  const most = 1 << 30;
  const gigabytes = globalThis.navigator && navigator.deviceMemory;
  return gigabytes ? Math.min(most, gigabytes * (1 << 29)) : most;
};

const drawn = async (source) => {
  const bitmap = await createImageBitmap(source);
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, bitmap.width, bitmap.height);
};

/** {data, width, height} of a picture: itself, or what the browser decodes or draws. */
async function pixelsOf(picture) {
  let pixels = picture;
  if (!ArrayBuffer.isView(Object(picture).data)) {
    if (typeof createImageBitmap !== 'function') throw new OrielError('there is nothing here that decodes pictures: give {data, width, height}, for example of the package sharp', 1);
    pixels = await drawn(picture).catch((error) => {
      throw new OrielError(`a picture cannot be decoded (${error.message}): give ImageData, {data, width, height}, a Blob or an image`, 1);
    });
  }
  const { data, width, height } = pixels;
  if (![3, 4].some((channels) => width > 0 && height > 0 && data.byteLength === width * height * channels)) {
    throw new OrielError(`a picture has ${width} x ${height} pixels and ${data.byteLength} bytes: give 4 bytes (RGBA) or 3 (RGB) for each pixel`, 1);
  }
  return { data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength), width, height };
}

const hasPictures = (messages) => [].concat(messages).some((message) => Object(message).pictures);

/** [messages, pictures]: `pictures` of messages become parts before their content that name them by number. */
async function unpacked(messages) {
  const pictures = [];
  const one = async (message) => {
    if (!Object(message).pictures) return message;
    const { pictures: given, content, ...rest } = message;
    const parts = [];
    for (const picture of given) parts.push({ type: 'image', picture: pictures.push(await pixelsOf(picture)) - 1 });
    return { ...rest, content: parts.concat(typeof content === 'string' ? { type: 'text', text: content } : content ?? []) };
  };
  if (!Array.isArray(messages)) return [await one(messages), pictures];
  const list = [];
  for (const message of messages) list.push(await one(message));
  return [list, pictures];
}

function nameOf(source) {
  if (source instanceof URL) return source.pathname;
  if (typeof source === 'string') return source;
  return (source && source.name) || 'the model';
}

/** Plans for one source, as often as asked, for example while a memory slider moves. */
class Planner {
  #client;
  #options;
  constructor(client, options) {
    this.#client = client;
    this.#options = options;
  }
  plan(options) {
    return this.#client.ask('plan', this.#client.modelOptions({ ...this.#options, ...options }));
  }
  /** The contents of the file, and the reasons if it cannot run. */
  describe() {
    return this.#client.ask('describeFile');
  }
  dispose() {
    this.#client.end(new OrielError('the planner was disposed of: open another', 12));
  }
}

/**
 * The class Oriel of a platform: {Host, the worker of a model; processors(); shares(), whether memory can be shared;
 * place(source), as the worker can open it; assets(folder), where the worker finds the module}.
 */
export function orielOn(platform) {
  return class Oriel {
    /** Loads a model: a path (Node), a URL, bytes or a Blob. */
    static async load(source, options = {}) {
      const client = await Client.open(platform, source, options);
      try {
        return new Model(client, await client.ask('load', client.modelOptions(options)));
      } catch (error) {
        client.end(error);
        throw error;
      }
    }

    /** The memory for a load with the same options; nothing is loaded. */
    static async plan(source, options = {}) {
      const planner = await Oriel.planner(source, options);
      try {
        return await planner.plan();
      } finally {
        planner.dispose();
      }
    }

    static async planner(source, options = {}) {
      return new Planner(await Client.open(platform, source, { ...options, threads: 1 }), options);
    }
  };
}

class Model {
  #client;
  #sessions = new Set();

  constructor(client, loaded) {
    this.#client = client;
    client.address = loaded.address;
    this.engine = client.settings.addon ? 'native' : 'wasm';
    this.plan = loaded.plan;
    this.threads = loaded.threads;
    this.version = loaded.version;
  }

  /** A conversation. Its memory is there already: a model has as many as options.sessions said, else one. */
  session(options = {}) {
    const create = async (id) => {
      const client = await this.#client.forSession();
      try {
        await client.ask('createSession', [id, options]);
      } catch (error) {
        this.#client.endSession(client);
        throw error;
      }
      return client;
    };
    return new Session(this.#client, this.#sessions, options.system, create);
  }

  tokenize(text, options) {
    return this.#client.ask('tokenize', [text, options]);
  }
  detokenize(ids, options) {
    return this.#client.ask('detokenize', [[...ids], options]);
  }
  /** The text of a conversation. */
  render(messages, options) {
    return this.#client.ask('render', [messages, options]);
  }
  describe() {
    return this.#client.ask('describe', []);
  }
  describeSnapshot(bytes) {
    return this.#client.ask('describeSnapshot', [bytes]);
  }
  /** Makes the session's content the beginning of all sessions. null: removes it. */
  setPrefix(session) {
    return session ? Session.setPrefix(session) : this.#client.ask('setPrefix', [null]);
  }
  /** Gives memory back until resume(): 'scratch', 'weights', 'cache' (into `folder`) or 'all'. Native only. */
  trim(level, { folder } = {}) {
    return this.#client.ask('trim', [level, folder]);
  }
  /** Stops replies between two tokens until resume(). Native only. */
  pause() {
    return this.#client.ask('pause', []);
  }
  resume() {
    return this.#client.ask('resume', []);
  }

  /** Ends the worker; everything of the model is gone with it. */
  async dispose() {
    if (this.#client.settings.addon && !this.#client.ended) {
      await Promise.all([...this.#sessions].map((session) => session.dispose()));
      await this.#client.ask('free').catch(ignore);
    }
    this.#client.end(new OrielError('the model was disposed of: load it again', 12));
  }
}

class Session {
  #model;  // its client
  #siblings;
  #id;
  #ready;  // the client of the session
  #disposed = false;
  #replies = new Set();  // that are not over

  /** make(id): a promise of the session's client, whose worker has the session by then. */
  constructor(model, siblings, system, make) {
    this.#model = model;
    this.#siblings = siblings;
    this.#id = model.nextSession++;
    this.#ready = make(this.#id);
    this.#ready.then(() => siblings.add(this), ignore);  // the first call throws it
    this.system = system;
  }

  static setPrefix(session) {
    return session.#ask('setPrefix');
  }

  async #live() {
    if (this.#disposed) throw new OrielError('the session was disposed of: make another', 12);
    return this.#ready;
  }
  async #ask(call, ...args) {
    return (await this.#live()).ask(call, [this.#id, ...args]);
  }
  /** Later calls wait for this one, which decodes pictures before it asks. */
  #first(call) {
    const ready = this.#ready;
    this.#ready = call.catch(ignore).then(() => ready);
    return call;
  }
  #reply(request, options) {
    const reply = new Reply(this.#model.shares, this.#live(), { session: this.#id, ...request }, options);
    this.#replies.add(reply);
    reply.result.catch(ignore).finally(() => this.#replies.delete(reply));
    return reply;
  }

  /** Adds a message, or a list of them, in the OpenAI form, without asking for a reply. */
  add(messages) {
    const given = typeof messages === 'string' ? { role: 'user', content: messages } : messages;
    if (!hasPictures(given)) return this.#ask('add', given);
    const live = this.#live();
    return this.#first(unpacked(given).then(async (args) => (await live).ask('add', [this.#id, ...args])));
  }
  /** The reply to a message: iterate over it for its text as it comes; `await reply.result` has all of it. */
  reply(message, options = {}) {
    const messages = typeof message === 'string' ? { role: 'user', content: message } : message;
    const reply = this.#reply({ chat: true, messages }, options);
    if (hasPictures(messages)) this.#first(reply.result);
    return reply;
  }
  /** Continues the session's text, without a chat format. */
  generate(options = {}) {
    return this.#reply({ chat: false }, options);
  }
  /** Appends a text or ids without a chat format. */
  append(input, options) {
    return this.#ask('append', typeof input === 'string' ? input : [...input], options);
  }
  /** How surprising ids are, one after another: {nll, nllMean}. They are appended. */
  score(ids) {
    return this.#ask('score', [...ids]);
  }
  embed(text, options) {
    return this.#ask('embed', text, options);
  }
  stats() {
    return this.#ask('stats');
  }
  describe() {
    return this.#ask('describeSession');
  }
  tokens(first = 0) {
    return this.#ask('tokens', first);
  }
  save() {
    return this.#ask('save');
  }
  restore(bytes, options) {
    return this.#ask('restore', bytes, options);
  }
  transcript() {
    return this.#ask('transcript');
  }
  /** Removes the tokens after a position, of the last {turns}, or after a {mark}. */
  goBack(to, options) {
    return this.#ask('goBack', to, options);
  }
  /** Names the current position. */
  mark(name) {
    return this.#ask('mark', name);
  }
  /** The LoRA adapters from here on, as the session option "adapters". */
  useAdapters(adapters) {
    return this.#ask('useAdapters', adapters);
  }
  /** A second session that continues from here. */
  fork() {
    const make = async (id) => {
      const from = await this.#live();
      const { at, system } = await from.ask('fork', [this.#id, id]);
      const client = await this.#model.forSession({ id, at, system });
      if (client !== this.#model) await from.ask('leave', [id]);
      return client;
    };
    return new Session(this.#model, this.#siblings, this.system, make);
  }
  /** After a lost device: builds it again and reads the conversation again. Native only. */
  recover({ device } = {}) {
    return this.#ask('recover', device);
  }
  /** Back to the beginning, with the system message. */
  reset() {
    return this.#ask('reset');
  }
  /** Ends replies that are not over. */
  async dispose() {
    if (this.#disposed) return;
    this.#disposed = true;
    for (const reply of this.#replies) reply.cancel();
    this.#siblings.delete(this);
    const client = await this.#ready.catch(ignore);
    if (!client || client.ended) return;
    await client.ask('destroySession', [this.#id]).catch(ignore);
    this.#model.endSession(client);
  }
}

/** The stop signal for a computing worker: a word of shared memory, or else an object URL that is revoked. */
class Stop {
  constructor(shares) {
    this.sent = shares ? { word: new Int32Array(new SharedArrayBuffer(4)) } : { address: URL.createObjectURL(new Blob([])) };
  }
  now() {
    if (this.sent.word) Atomics.store(this.sent.word, 0, 1);
    else URL.revokeObjectURL(this.sent.address);
  }
}

class Reply {
  #events = [];
  #wake = null;
  #over = false;
  #error = null;
  #stop;

  /** `ready`: a promise of the session's client. */
  constructor(shares, ready, request, { signal, ...options }) {
    this.#stop = new Stop(shares);
    this.result = this.#run(ready, { ...request, options, stop: this.#stop.sent }, signal);
    this.result.catch(ignore);  // iterating says it, too
  }

  async #run(ready, request, signal) {
    const abort = () => this.cancel();
    try {
      const client = await ready;
      if (signal && signal.aborted) throw reasonOf(signal);
      if (signal) signal.addEventListener('abort', abort);
      if (hasPictures(request.messages)) [request.messages, request.pictures] = await unpacked(request.messages);
      const result = await client.ask('reply', request, (event) => this.#put(event));
      if (signal && signal.aborted && result.stopReason === 'cancelled') throw Object.assign(reasonOf(signal), { result });
      return result;
    } catch (error) {
      this.#error = signal && signal.aborted && error.code === 10 ? reasonOf(signal) : error;
      throw this.#error;
    } finally {
      this.cancel();  // gives the address back
      this.#over = true;
      this.#put(null);
      if (signal) signal.removeEventListener('abort', abort);
    }
  }

  #put(event) {
    if (event) this.#events.push(event);
    if (this.#wake) this.#wake();
  }

  /** Ends the reply after its current token; the session keeps the text so far. */
  cancel() {
    this.#stop.now();
  }

  /** What `pick` makes of the events, without undefined. */
  async *#heard(pick) {
    try {
      for (;;) {
        while (this.#events.length) {
          const value = pick(this.#events.shift());
          if (value !== undefined) yield value;
        }
        if (this.#over) break;
        await new Promise((resolve) => (this.#wake = resolve));
        this.#wake = null;
      }
      if (this.#error) throw this.#error;
    } finally {
      if (!this.#over) {  // the loop was left
        this.cancel();
        await this.result.catch(ignore);
      }
    }
  }

  /** Everything that happens: text, thought, call, arguments, callEnd, reading. */
  events() {
    return this.#heard((event) => event);
  }

  [Symbol.asyncIterator]() {
    return this.#heard((event) => (event.type === 'text' ? event.text : undefined));
  }
}

function reasonOf(signal) {
  const reason = signal.reason;
  return reason instanceof Error && Object.isExtensible(reason) ? reason : new OrielError('cancelled', 10);
}

if (Symbol.dispose) {
  for (const type of [Model, Session, Planner]) type.prototype[Symbol.dispose] = function () { this.dispose(); };
}
if (Symbol.asyncDispose) {
  for (const type of [Model, Session]) type.prototype[Symbol.asyncDispose] = function () { return this.dispose(); };
}
