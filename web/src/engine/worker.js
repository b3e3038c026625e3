// The worker that a model lives in: takes requests, one after another, and answers them. browser.js and node.js start it.
'use strict';

const { memoryFor, memoryForPlans, startModule } = require('./engine.js');
const { openSource } = require('./host.js');
const { OrielFailure } = require('./values.js');

let platform = null;
const send = (message, transfer) => platform.port.postMessage(message, transfer || []);

let settings = null;  // of 'start'
let engine = null;
let planner = null;
const files = new Map();  // sources by the names that the library opens
let sourceName = 'the model';
let eyesFrom;  // the latest option mmproj

// A word in shared memory stops a request. Without shared memory, the page
// revokes an object URL, and the worker requests that URL now and then, because a computing worker
// receives no messages.
const WATCH_MS = 40;
function watch({ word, address }) {
  if (word) return () => Atomics.load(word, 0) !== 0;
  let next = 0;
  let stop = false;
  return () => {
    const now = Date.now();
    if (stop || now < next) return stop;
    next = now + WATCH_MS;
    try {
      const request = new XMLHttpRequest();
      request.open('GET', address, false);
      request.send();
    } catch (error) {
      stop = true;
    }
    return stop;
  };
}

// A message costs both threads about 70 us, a token of a small model 500. Events that follow each other quickly go
// together; while there are gaps of more than HELD_MS, each goes at once.
const HELD_MS = 8;
function gathered(send, now = () => performance.now()) {
  let values = [];
  let last = now();
  let sent = last;
  let gap = 100 * HELD_MS;  // the largest of late
  const flush = () => {
    if (values.length) send(values);
    values = [];
    sent = last;
  };
  const emit = (value) => {
    const time = now();
    gap = Math.max(gap * 0.8, time - last);
    last = time;
    values.push(value);
    if (gap > HELD_MS || time - sent > HELD_MS) flush();
  };
  return { emit, flush };
}

/** Compiled once for each of the two builds. */
const builds = {};
function build(threads) {
  const name = threads ? 'threads' : 'single';
  return (builds[name] = builds[name] || platform.build(threads, settings));
}
/** An engine for `plan`, or for plans. */
async function start(threads, plan) {
  if (settings.addon) return platform.native(settings.addon);
  return startModule(await build(threads > 1), threads, plan ? memoryFor(plan, threads) : memoryForPlans);
}

function logTo(target) {
  target.hooks.log = (level, text) => {
    if (level > 0 && level <= settings.logLevel) send({ event: 'log', level, text });
  };
}

async function planning() {
  if (!planner) {
    planner = await start(0);
    logTo(planner);
    planner.useFiles(files, sourceName);
  }
  return planner;
}

/** A source that the library opens by the name that this gives: the addon by a path. */
function keepFile(name, source) {
  const file = settings.addon ? platform.inFile(source) : source;
  const known = settings.addon ? file.path : name;
  closeFile(known);
  files.set(known, file);
  return known;
}
function closeFile(name) {
  const file = files.get(name);
  files.delete(name);
  if (file) file.close();
}

/** The options for the library, which gets the name of a file for the source mmproj. */
async function withEyes({ mmproj, ...options }) {
  if (mmproj === undefined || mmproj === null) return options;
  if (!eyesFrom || mmproj !== eyesFrom.given) {
    eyesFrom = { given: mmproj, name: keepFile('mmproj', await openSource(mmproj, () => {}, platform)) };
  }
  return { ...options, mmproj: eyesFrom.name };
}

const calls = {
  async start(id, given) {
    settings = given.settings;
    sourceName = given.name || sourceName;
    let last = 0;
    const source = await openSource(given.source, (done, total) => {
      if (Date.now() - last > 50) {
        last = Date.now();
        send({ event: 'progress', what: 'fetch', done, total });
      }
    }, platform);
    sourceName = keepFile(sourceName, source);
  },

  /** Instead of start and load: for a session of a model of this process. */
  async attach(id, { settings: given, ...what }) {
    settings = given;
    engine = await start(settings.threads);
    logTo(engine);
    engine.attach(what);
  },

  async plan(id, options) {
    return (await planning()).plan(await withEyes(options));
  },

  async describeFile() {
    return (await planning()).describeFile();
  },

  async load(id, given) {
    const threads = settings.threads;
    const options = await withEyes(given);
    const plan = (await planning()).plan(options);
    planner = null;
    if (!plan.fits) {
      throw Object.assign(new OrielFailure(5, `${sourceName} needs ${plan.minimumBytes} bytes, and memory is ${plan.memoryBytes}: give it more`), { plan });
    }
    engine = await start(threads, plan);
    logTo(engine);
    engine.useFiles(files, sourceName);
    let last = 0;
    engine.hooks.progress = (done, total) => {
      if (Date.now() - last > 50) {
        last = Date.now();
        send({ event: 'progress', what: 'load', done, total });
      }
      return 0;
    };
    const loaded = engine.load({ ...options, memory: plan.memoryBytes, threads });
    engine.hooks.progress = undefined;
    if (plan.onFileBytes === 0 && !settings.addon) {  // it is in the module's memory now, and nowhere else
      closeFile(sourceName);
    }
    return { ...loaded, threads, address: engine.model };
  },

  /** The worker ends next. */
  async free() {
    if (engine) engine.free();
    [...files.keys()].forEach(closeFile);
  },

  reply(id, { session, chat, messages, pictures, options, stop }) {
    const stopped = watch(stop);
    if (stopped()) throw new OrielFailure(10, 'cancelled');
    const events = gathered((values) => send({ event: 'reply', id, values }));
    try {
      return engine.reply(session, { chat, messages, pictures }, options, events.emit, stopped);
    } finally {
      events.flush();
    }
  },
};
for (const name of ['createSession', 'destroySession', 'fork', 'add', 'append', 'score', 'embed', 'stats', 'describeSession', 'tokens',
  'reset', 'goBack', 'mark', 'useAdapters', 'save', 'restore', 'transcript', 'describe', 'tokenize', 'detokenize', 'render', 'describeSnapshot', 'setPrefix',
  'trim', 'pause', 'resume', 'recover', 'leave']) {
  calls[name] = (id, args) => engine[name](...args);
}

let queue = Promise.resolve();
let broken = null;  // by a trap: the module's memory is unusable afterwards
async function answer({ id, call, args }) {
  try {
    if (broken) throw broken;
    const value = await calls[call](id, args);
    const transfer = value instanceof Uint8Array || value instanceof Float32Array ? [value.buffer] : [];
    send({ id, value }, transfer);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) {
      error = broken = new OrielFailure(15, `the module failed (${error.message}): load the model again`);
    }
    send({ id, error: { status: error.status === undefined ? 15 : error.status, message: error.message, plan: error.plan } });
  }
}

/**
 * Takes requests from then on: the result is to be called with each. `given`: {port; build(threads, settings), the
 * module's script and compiled code; what openSource needs}.
 */
function serve(given) {
  platform = given;
  return (message) => {
    queue = queue.then(() => answer(message));
  };
}

module.exports = { serve, gathered };
