// Models that a browser keeps: downloaded once into the site's private file system (OPFS), resumed where a download ended.
//
//   const file = await cachedModel('https://example.org/model.gguf', { sha256, progress });
//   const model = await Oriel.load(file);
//
// A model is a folder of parts, so that an interrupted download keeps what it has, and a file info.json once it is whole.
import { OrielError } from './oriel.js';
import { Sha256 } from './sha256.js';

const FOLDER = 'oriel-models';
const PART_BYTES = 16 << 20;
const IO = 2;
const FORMAT = 3;

const hashOf = (text) => new Sha256().update(new TextEncoder().encode(text)).hex();
const partName = (index) => `part-${String(index).padStart(5, '0')}`;

/** The folder of one model. */
class Kept {
  constructor(folder) {
    this.folder = folder;
  }
  static async open(url) {
    const root = await navigator.storage.getDirectory();
    const all = await root.getDirectoryHandle(FOLDER, { create: true });
    return new Kept(await all.getDirectoryHandle(hashOf(url), { create: true }));
  }
  async read(name) {
    try {
      return await (await this.folder.getFileHandle(name)).getFile();
    } catch {
      return null;
    }
  }
  async write(name, data) {
    const file = await (await this.folder.getFileHandle(name, { create: true })).createWritable();
    try {
      await file.write(data);
    } finally {
      await file.close();
    }
  }
  async clear() {
    const names = [];
    for await (const name of this.folder.keys()) names.push(name);
    for (const name of names) await this.folder.removeEntry(name);
  }
  /** The whole file or null; what there is of it otherwise. */
  async info(name = 'info.json') {
    const file = await this.read(name);
    try {
      return file && JSON.parse(await file.text());
    } catch {
      return null;
    }
  }
  /** Parts in order, up to the first that is missing or not full. */
  async parts() {
    const parts = [];
    for (;;) {
      const part = await this.read(partName(parts.length));
      if (!part || part.size === 0) return parts;
      parts.push(part);
      if (part.size !== PART_BYTES) return parts;
    }
  }
}

/** Appends a response's pieces to the parts. */
class Writer {
  constructor(kept, index, hash) {
    this.kept = kept;
    this.index = index;
    this.hash = hash;
    this.part = new Uint8Array(PART_BYTES);
    this.filled = 0;
  }
  async add(piece) {
    this.hash.update(piece);
    for (let at = 0; at < piece.length;) {
      const bytes = Math.min(piece.length - at, PART_BYTES - this.filled);
      this.part.set(piece.subarray(at, at + bytes), this.filled);
      this.filled += bytes;
      at += bytes;
      if (this.filled === PART_BYTES) await this.flush();
    }
  }
  async flush() {
    if (this.filled) await this.kept.write(partName(this.index++), this.part.subarray(0, this.filled));
    this.filled = 0;
  }
}

/** What says that a file on a server is still the same. */
function validatorOf(response) {
  const etag = response.headers.get('etag');
  return etag && !etag.startsWith('W/') ? etag : response.headers.get('last-modified');
}

async function request(url, headers, signal) {
  try {
    return await fetch(url, { headers, signal });
  } catch (error) {
    if (signal && signal.aborted) throw signal.reason;
    throw new OrielError(`the model cannot be fetched (${error.message}): check the address and the network`, IO);
  }
}

async function download(kept, url, { sha256, progress = () => {}, signal }) {
  const begun = await kept.info('begun.json');
  let parts = await kept.parts();
  // Only full parts count: a last one was cut off with the download.
  parts = parts.filter((part) => part.size === PART_BYTES);
  const same = begun && (begun.validator || (sha256 && begun.sha256 === sha256));
  let done = same ? parts.length * PART_BYTES : 0;
  let response = await request(url, done ? { range: `bytes=${done}-`, ...(begun.validator ? { 'if-range': begun.validator } : {}) } : {}, signal);
  if (done && response.status !== 206) {  // the file is another, or the server knows no ranges
    done = 0;
    if (response.status !== 200) response = await request(url, {}, signal);
  }
  if (!response.ok) throw new OrielError(`${url} answered ${response.status}: check the address`, IO);
  if (done === 0) {
    parts = [];
    await kept.clear();
    await kept.write('begun.json', JSON.stringify({ url, validator: validatorOf(response), sha256 }));
  }
  const rest = Number(response.headers.get('content-length')) || 0;
  const total = rest && !response.headers.get('content-encoding') ? done + rest : 0;
  const hash = new Sha256();
  for (const part of parts) hash.update(new Uint8Array(await part.arrayBuffer()));
  const writer = new Writer(kept, parts.length, hash);
  progress({ what: 'fetch', done, total });
  const reader = response.body.getReader();
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (signal && signal.aborted) throw signal.reason;
      throw new OrielError(`the download ended after ${done} bytes (${error.message}): call again to go on`, IO);
    }
    if (piece.done) break;
    await writer.add(piece.value);
    done += piece.value.length;
    progress({ what: 'fetch', done, total });
  }
  if (total && done !== total) throw new OrielError(`the download ended after ${done} of ${total} bytes: call again to go on`, IO);
  await writer.flush();
  const found = hash.hex();
  if (sha256 && found !== sha256.toLowerCase()) {
    await kept.clear();
    throw new OrielError(`${url} has the SHA-256 ${found}, and ${sha256} was expected: check both`, FORMAT);
  }
  await kept.write('info.json', JSON.stringify({ url, bytes: done, sha256: found }));
}

/** The whole file, if it is here and is the one that is wanted. */
async function whole(kept, sha256) {
  const info = await kept.info();
  if (!info || (sha256 && info.sha256 !== sha256.toLowerCase())) return null;
  const parts = await kept.parts();
  const bytes = parts.reduce((sum, part) => sum + part.size, 0);
  return bytes === info.bytes ? new Blob(parts) : null;
}

/** One download of a model at a time, whatever tabs ask for it. */
const alone = (url, signal, body) => (navigator.locks ? navigator.locks.request(`oriel ${url}`, signal ? { signal } : {}, body) : body());

/** The model as a Blob for Oriel.load, downloaded if it is not here yet. Call again after an error to resume. */
export function cachedModel(url, options = {}) {
  const address = new URL(url, globalThis.location.href).href;
  return alone(address, options.signal, async () => {
    const kept = await Kept.open(address);
    const here = await whole(kept, options.sha256);
    if (here) return here;
    await download(kept, address, options);
    return whole(kept, options.sha256);
  });
}

/** Removes a model, or what there is of it. */
export function forgetModel(url) {
  const address = new URL(url, globalThis.location.href).href;
  return alone(address, undefined, async () => {
    const root = await navigator.storage.getDirectory();
    const all = await root.getDirectoryHandle(FOLDER, { create: true });
    await all.removeEntry(hashOf(address), { recursive: true }).catch((error) => {
      if (error.name !== 'NotFoundError') throw error;
    });
  });
}
