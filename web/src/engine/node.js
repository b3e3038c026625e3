// The worker in Node.
'use strict';

const fs = require('fs');
const path = require('path');
const { fileURLToPath } = require('url');
const { parentPort } = require('worker_threads');
const { fromBytes } = require('./host.js');
const { inFile, startAddon } = require('./native.js');
const { serve } = require('./worker.js');

const MOST_READ_BYTES = 1 << 30;
const folder = path.join(__dirname, '..', '..', 'dist');

function fromPath(name) {
  const file = fs.openSync(name, 'r');
  return {
    path: name,
    size: fs.fstatSync(file).size,
    read(offset, into) {
      for (let at = 0; at < into.byteLength;) {
        const got = fs.readSync(file, into, at, Math.min(into.byteLength - at, MOST_READ_BYTES), offset + at);
        if (got <= 0) throw new Error('the file was cut off');
        at += got;
      }
    },
    close() {
      fs.closeSync(file);
    },
  };
}

parentPort.on('message', serve({
  port: parentPort,
  native: startAddon,
  inFile,

  async build(threads) {
    const name = threads ? 'oriel-threads' : 'oriel';
    const script = path.join(folder, `${name}.js`);
    const code = await WebAssembly.compile(fs.readFileSync(path.join(folder, `${name}.wasm`)));
    return { create: require(script), code, shared: threads, script, locate: (file) => path.join(folder, file) };
  },

  openFile(source) {
    if (source.startsWith('file:')) return fromPath(fileURLToPath(source));
    return /^https?:/.test(source) ? null : fromPath(source);
  },

  fromBlob: async (blob) => fromBytes(new Uint8Array(await blob.arrayBuffer())),

  gather() {
    const pieces = [];
    return { add: (piece) => pieces.push(piece), end: () => fromBytes(Buffer.concat(pieces)) };
  },
}));
