// The structs of the C API as JavaScript objects, by the table that shim.cpp compiles. Names lose their underscores:
// window_tokens is windowTokens.
'use strict';

const { OrielFailure, whole, single, decode } = require('./values.js');

/** Whole numbers of a field's kind. A double has no larger one below 2^64. */
const RANGES = { i: [-(2 ** 31), 2 ** 31 - 1], u: [0, 2 ** 32 - 1], p: [0, 2 ** 32 - 1], q: [0, 2 ** 64 - 2048] };

const camel = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());

class Structs {
  /** `module`: functions whose results are unsigned. `heap` gives the module's memory, which may have grown since the last call. */
  constructor(module, heap) {
    this.module = module;
    this.heap = heap;
    this.types = {};
    const view = this.view();
    const at = module._web_structs();
    for (let i = 0; i < module._web_struct_count(); ++i) {
      const [name, bytes, count, fields] = [0, 4, 8, 12].map((k) => view.getUint32(at + 16 * i + k, true));
      const type = { bytes, fields: [] };
      for (let f = 0; f < count; ++f) {
        const word = (k) => view.getUint32(fields + 24 * f + 4 * k, true);
        type.fields.push({
          name: camel(this.text(word(0))), offset: word(1), kind: String.fromCharCode(word(2)), count: word(3),
          bytes: word(4), type: this.text(word(5)),
        });
      }
      this.types[this.text(name)] = type;
    }
  }

  view() {
    return new DataView(this.heap());
  }

  /** A text that ends in NUL, or has so many bytes. */
  text(at, bytes) {
    const memory = new Uint8Array(this.heap());
    const end = bytes === undefined ? memory.indexOf(0, at) : at + bytes;
    return decode(memory.slice(at, end));  // a copy: decoders refuse shared memory
  }

  allocate(bytes) {
    const at = bytes < 2 ** 32 ? this.module._malloc(Math.max(bytes, 8)) : 0;
    if (at === 0) throw new OrielFailure(6, 'no memory left in WebAssembly: give less text or more memory');
    return at;
  }

  /** A zeroed struct with these fields; what is undefined stays zero. The caller frees it. */
  make(name, values = {}) {
    const type = this.types[name];
    const at = this.allocate(type.bytes);
    new Uint8Array(this.heap()).fill(0, at, at + type.bytes);
    const view = this.view();
    view.setUint32(at, type.bytes, true);  // struct_size
    for (const key of Object.keys(values)) {
      const field = type.fields.find((f) => f.name === key);
      if (!field) throw new Error(`${name} has no field ${key}`);
      if (values[key] !== undefined && values[key] !== null) this.put(view, at + field.offset, field.kind, values[key], key);
    }
    return at;
  }

  put(view, at, kind, value, name) {
    if (kind === 'f') return view.setFloat32(at, single(name, value), true);
    if (!RANGES[kind]) throw new Error(`${name} is of a kind that is only read`);
    const number = whole(name, value, ...RANGES[kind]);
    if (kind === 'q') return view.setBigUint64(at, BigInt(number), true);
    return kind === 'i' ? view.setInt32(at, number, true) : view.setUint32(at, number, true);
  }

  get(view, at, field) {
    switch (field.kind) {
      case 'd': return view.getFloat64(at, true);
      case 'f': return view.getFloat32(at, true);
      case 'i': return view.getInt32(at, true);
      case 'u':
      case 'p': return view.getUint32(at, true);
      case 'q': return Number(view.getBigUint64(at, true));
      case 'l': return Number(view.getBigInt64(at, true));
      default: return this.read(field.type, at);
    }
  }

  read(name, at) {
    const view = this.view();
    const result = {};
    for (const field of this.types[name].fields) {
      const from = at + field.offset;
      if (field.kind === 's') {
        result[field.name] = this.text(from);
      } else if (field.count > 1) {
        result[field.name] = Array.from({ length: field.count }, (_, i) => this.get(view, from + i * field.bytes, field));
      } else {
        result[field.name] = this.get(view, from, field);
      }
    }
    return result;
  }
}

module.exports = { Structs };
