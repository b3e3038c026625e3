// Functions that the module calls: reads of the model file, and the callbacks of the C API. Model files as it reads them:
// piece by piece, into its memory, and nothing of them is kept.
'use strict';

const { OrielFailure, bytesFrom, camel, unsigned } = require('./values.js');

/** Which arguments of a function are addresses. */
const ADDRESSES = { open: [0], read: [2], log: [1], number: [0], token: [1, 5], part: [2, 4], logits: [1] };

/**
 * `memory`: of the module; null for the addon, whose addresses are unsigned and which reads files directly.
 * `engineOf()`: the engine, once it has started. The result is Module.orielHost of host_library.js, and the functions
 * called by addon.cpp.
 */
function hostOf(memory, engineOf) {
  const opened = new Map();
  let next = 1;
  const tell = (level, text) => {
    const engine = engineOf();
    text = engine.spoken(text);
    if (level === 0) engine.lastError = text;
    if (engine.hooks.log) engine.hooks.log(level, text);
  };
  const host = {
    files: new Map(),
    open(name) {
      const source = host.files.get(engineOf().text(name));
      if (!source) return -1;
      opened.set(next, source);
      return next++;
    },
    close: (file) => opened.delete(file),
    size: (file) => opened.get(file).size,
    read(file, offset, to, bytes) {
      try {
        opened.get(file).read(offset, new Uint8Array(memory.buffer, to, bytes));
        return 0;
      } catch (error) {
        tell(1, `reading failed: ${error.message}`);
        return -1;
      }
    },
    log: (level, message) => tell(level, engineOf().text(message)),
    progress: (done, total) => (engineOf().hooks.progress ? engineOf().hooks.progress(done, total) : 0),
    token: (...args) => engineOf().hooks.token(...args),
    part: (...args) => engineOf().hooks.part(...args),
    logits: (...args) => engineOf().hooks.logits(...args),
    number: (name, value) => (engineOf().numbers[camel(engineOf().text(name))] = value),
  };
  for (const [name, places] of memory ? Object.entries(ADDRESSES) : []) {
    const call = host[name];
    host[name] = (...args) => call(...args.map((arg, i) => (places.includes(i) ? unsigned(arg) : arg)));
  }
  return host;
}

function fromBytes(bytes) {
  return {
    size: bytes.byteLength,
    read(offset, into) {
      into.set(bytes.subarray(offset, offset + into.byteLength));
    },
    close() {},
  };
}

/** A download. `platform.gather()` collects its pieces: {add(piece), end(), a source}. */
async function fetched(url, onProgress, platform) {
  const response = await fetch(url);
  if (!response.ok) throw new OrielFailure(2, `${url} answered ${response.status}: check the address`);
  const total = Number(response.headers.get('content-length')) || 0;
  const reader = response.body.getReader();
  const gathered = platform.gather();
  for (let done = 0; ;) {
    const piece = await reader.read();
    if (piece.done) return gathered.end();
    gathered.add(piece.value);
    done += piece.value.byteLength;
    onProgress(done, total);
  }
}

async function opened(source, onProgress, platform) {
  if (typeof source === 'string') return platform.openFile(source) || fetched(source, onProgress, platform);
  if (typeof Blob !== 'undefined' && source instanceof Blob) return platform.fromBlob(source);
  if (source === null || typeof source !== 'object') throw new OrielFailure(1, `${source} is no model: give a path, a URL, bytes or a Blob`);
  return fromBytes(bytesFrom(source));
}

/** `source`: a path (Node), a URL, bytes or a Blob. `platform`: as browser.js and node.js have it. */
async function openSource(source, onProgress, platform) {
  try {
    return await opened(source, onProgress, platform);
  } catch (error) {
    if (error instanceof OrielFailure) throw error;
    const { cause = error } = error;  // fetch keeps the reason there
    throw new OrielFailure(2, `the model cannot be read (${cause.message || cause.code}): check the path or the address`);
  }
}

module.exports = { hostOf, openSource, fromBytes };
