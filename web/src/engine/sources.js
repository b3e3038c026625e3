// Model files as the module reads them: piece by piece, into its memory, and nothing of them is kept.
'use strict';

const { OrielFailure, bytesFrom } = require('./values.js');

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

module.exports = { openSource, fromBytes };
