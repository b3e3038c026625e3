// Model files as the module reads them: piece by piece, into its memory, and nothing of them is kept.
'use strict';

(function (share) {
const inNode = typeof process === 'object' && !!process.versions && !!process.versions.node;
const { OrielFailure, bytesFrom } = inNode ? require('./values.js') : self.orielParts;

function fromBytes(bytes) {
  return {
    size: bytes.byteLength,
    read(offset, into) {
      into.set(bytes.subarray(offset, offset + into.byteLength));
    },
    close() {},
  };
}

function fromPath(path) {
  const fs = require('fs');
  const file = fs.openSync(path, 'r');
  return {
    size: fs.fstatSync(file).size,
    read(offset, into) {
      for (let at = 0; at < into.byteLength;) {
        const got = fs.readSync(file, into, at, Math.min(into.byteLength - at, 1 << 30), offset + at);
        if (got <= 0) throw new Error('the file was cut off');
        at += got;
      }
    },
    close() {
      fs.closeSync(file);
    },
  };
}

/** Of workers in browsers: reads as the module asks, so that the file is never in memory as a whole. */
function fromBlob(blob) {
  const reader = new FileReaderSync();
  return {
    size: blob.size,
    read(offset, into) {
      const most = 4 << 20;
      for (let at = 0; at < into.byteLength; at += most) {
        const end = Math.min(at + most, into.byteLength);
        into.set(new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset + at, offset + end))), at);
      }
    },
    close() {},
  };
}

/** What comes over the network, in pieces of its own size. Dropped when the model is loaded. */
async function fetched(url, onProgress) {
  const response = await fetch(url);
  if (!response.ok) throw new OrielFailure(2, `${url} answered ${response.status}: check the address`);
  const total = Number(response.headers.get('content-length')) || 0;
  const reader = response.body.getReader();
  let blob = inNode ? null : new Blob([]);
  let waiting = [];
  let held = 0;
  let done = 0;
  for (;;) {
    const piece = await reader.read();
    if (piece.value) {
      waiting.push(piece.value);
      held += piece.value.byteLength;
      done += piece.value.byteLength;
      onProgress(done, total);
    }
    if (blob && (piece.done || held > 8 << 20)) {
      blob = new Blob([blob, ...waiting]);  // which the browser may put on disk
      waiting = [];
      held = 0;
    }
    if (piece.done) break;
  }
  if (blob) return fromBlob(blob);
  const bytes = new Uint8Array(done);
  let at = 0;
  for (const piece of waiting) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return fromBytes(bytes);
}

async function opened(source, onProgress) {
  if (typeof source === 'string') {
    if (inNode && source.startsWith('file:')) return fromPath(require('url').fileURLToPath(source));
    return inNode && !/^https?:/.test(source) ? fromPath(source) : fetched(source, onProgress);
  }
  if (typeof Blob !== 'undefined' && source instanceof Blob) {
    return inNode ? fromBytes(new Uint8Array(await source.arrayBuffer())) : fromBlob(source);
  }
  if (source === null || typeof source !== 'object') throw new OrielFailure(1, `${source} is no model: give a path, a URL, bytes or a Blob`);
  return fromBytes(bytesFrom(source));
}

/** `source`: a path (Node), a URL, bytes or a Blob. */
async function openSource(source, onProgress) {
  try {
    return await opened(source, onProgress);
  } catch (error) {
    if (error instanceof OrielFailure) throw error;
    const { cause = error } = error;  // fetch keeps the reason there
    throw new OrielFailure(2, `the model cannot be read (${cause.message || cause.code}): check the path or the address`);
  }
}

share({ openSource, inNode });

})((parts) => (typeof module === 'object' ? Object.assign(module.exports, parts)
  : Object.assign((self.orielParts = self.orielParts || {}), parts)));
