// Functions that the module calls: reads of the model file, and the callbacks of the C API.
'use strict';

const { camel, unsigned } = require('./values.js');

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

module.exports = { hostOf };
