// The structs of the C API as JavaScript objects, by the table that shim.cpp compiles. Names lose their underscores:
// window_tokens is windowTokens.
'use strict';

(function (share) {
const camel = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());

class Structs {
  /** `heap` gives the module's memory, which may have grown since the last call. */
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
    return new TextDecoder().decode(memory.slice(at, end));  // a copy: decoders refuse shared memory
  }

  allocate(bytes) {
    const at = this.module._malloc(Math.max(bytes, 8));
    if (at === 0) throw Object.assign(new Error('no memory left in WebAssembly: give less text or more memory'), { status: 6 });
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
      if (values[key] !== undefined && values[key] !== null) this.put(view, at + field.offset, field.kind, values[key]);
    }
    return at;
  }

  put(view, at, kind, value) {
    switch (kind) {
      case 'd': return view.setFloat64(at, value, true);
      case 'f': return view.setFloat32(at, value, true);
      case 'i': return view.setInt32(at, Number(value), true);
      case 'u':
      case 'p': return view.setUint32(at, Number(value), true);
      case 'q':
      case 'l': return view.setBigInt64(at, BigInt.asIntN(64, BigInt(Math.trunc(Number(value)))), true);
      default: throw new Error('a field that is only read');
    }
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

share({ Structs });

})((parts) => (typeof module === 'object' ? Object.assign(module.exports, parts)
  : Object.assign((self.orielParts = self.orielParts || {}), parts)));
