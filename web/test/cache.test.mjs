// Cached models, in Node with a file system of its own that has OPFS's calls; browser.test.mjs has the real one.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';

import { Sha256 } from '../src/sha256.js';

class MemoryFile {
  data = new Uint8Array(0);
  async getFile() {
    return new Blob([this.data]);
  }
  async createWritable() {
    const pieces = [];
    return {
      write: async (data) => pieces.push(typeof data === 'string' ? Buffer.from(data) : Uint8Array.from(data)),
      close: async () => (this.data = Buffer.concat(pieces)),
    };
  }
}
class MemoryFolder {
  entries = new Map();
  async #handle(type, name, create) {
    if (!this.entries.has(name) && !create) throw Object.assign(new Error(name), { name: 'NotFoundError' });
    if (!this.entries.has(name)) this.entries.set(name, new type());
    return this.entries.get(name);
  }
  getFileHandle(name, { create = false } = {}) {
    return this.#handle(MemoryFile, name, create);
  }
  getDirectoryHandle(name, { create = false } = {}) {
    return this.#handle(MemoryFolder, name, create);
  }
  async removeEntry(name) {
    if (!this.entries.delete(name)) throw Object.assign(new Error(name), { name: 'NotFoundError' });
  }
  async *keys() {
    yield* [...this.entries.keys()];
  }
}

let root;
Object.defineProperty(globalThis.navigator ?? (globalThis.navigator = {}), 'storage', { value: { getDirectory: async () => root }, configurable: true });
globalThis.location = { href: 'http://localhost/' };
const { cachedModel, forgetModel } = await import('../src/cached_model.js');

const file = randomBytes((16 << 20) * 2 + 12345);
const sum = createHash('sha256').update(file).digest('hex');
let server;
let url;
let asked;        // ranges of the requests
let cutAfter;     // bytes of an answer; then the connection ends
let etag;
let ranges;
before(async () => {
  server = createServer((request, response) => {
    asked.push(request.headers.range);
    const from = ranges && request.headers.range && (!request.headers['if-range'] || request.headers['if-range'] === etag) ? Number(request.headers.range.match(/\d+/)[0]) : 0;
    const rest = file.subarray(from);
    response.writeHead(from ? 206 : 200, { 'content-length': rest.length, ...(etag ? { etag } : {}) });
    if (cutAfter === undefined) response.end(rest);
    else response.write(rest.subarray(0, cutAfter), () => setTimeout(() => response.destroy(), 50));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${server.address().port}/model.gguf`;
});
after(() => server.close());
beforeEach(() => {
  root = new MemoryFolder();
  [asked, cutAfter, etag, ranges] = [[], undefined, '"one"', true];
});
const bytesOf = async (blob) => Buffer.from(await blob.arrayBuffer());

test('sums_are_those_of_another_program', () => {
  for (const bytes of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 100003]) {
    const data = randomBytes(bytes);
    const hash = new Sha256();
    for (let at = 0; at < bytes; at += 37) hash.update(data.subarray(at, at + 37));
    assert.equal(hash.hex(), createHash('sha256').update(data).digest('hex'), `${bytes}`);
  }
});

test('a_model_is_fetched_once', async () => {
  const told = [];
  const first = await cachedModel(url, { sha256: sum, progress: ({ done, total }) => told.push([done, total]) });
  assert.ok((await bytesOf(first)).equals(file));
  assert.deepEqual(told[0], [0, file.length]);
  assert.deepEqual(told.at(-1), [file.length, file.length]);
  assert.ok((await bytesOf(await cachedModel(url))).equals(file));
  assert.equal(asked.length, 1);
  await forgetModel(url);
  await forgetModel(url);
  await cachedModel(url);
  assert.equal(asked.length, 2);
});

test('the_sample_of_docs_web_md_runs', async () => {
  const page = readFileSync(new URL('../../docs/web.md', import.meta.url), 'utf8');
  const [, sample] = page.match(/^    import { cachedModel } from 'oriel\/cache';\n((?:    .*\n)+)/m);
  const AsyncFunction = (async () => {}).constructor;
  const names = ['cachedModel', 'Oriel', 'sha256', 'progress', 'signal'];
  const run = new AsyncFunction(...names, `${sample.replace('https://example.org/model.gguf', url)}; return model;`);
  const loaded = await run(cachedModel, { load: async (...given) => given }, undefined, () => {}, new AbortController().signal);
  assert.ok((await bytesOf(loaded[0])).equals(file));
  assert.equal(typeof loaded[1].memory, 'string');
});

test('a_download_that_ended_goes_on', async () => {
  cutAfter = (16 << 20) + 1000;
  await assert.rejects(cachedModel(url, { sha256: sum }), { status: 'io' });
  cutAfter = undefined;
  assert.ok((await bytesOf(await cachedModel(url, { sha256: sum }))).equals(file));
  assert.deepEqual(asked, [undefined, `bytes=${16 << 20}-`]);
});

test('another_file_under_the_address_begins_again', async () => {
  cutAfter = (16 << 20) + 1000;
  await assert.rejects(cachedModel(url), { status: 'io' });
  [cutAfter, etag] = [undefined, '"two"'];
  assert.ok((await bytesOf(await cachedModel(url))).equals(file));
  // Without a way to know, nothing of it is used.
  root = new MemoryFolder();
  [cutAfter, etag, asked] = [(16 << 20) + 1000, undefined, []];
  await assert.rejects(cachedModel(url), { status: 'io' });
  cutAfter = undefined;
  await cachedModel(url);
  assert.deepEqual(asked, [undefined, undefined]);
});

test('a_server_without_ranges_begins_again', async () => {
  cutAfter = (16 << 20) + 1000;
  await assert.rejects(cachedModel(url), { status: 'io' });
  [cutAfter, ranges] = [undefined, false];
  assert.ok((await bytesOf(await cachedModel(url))).equals(file));
});

test('a_wrong_sum_leaves_nothing', async () => {
  await assert.rejects(cachedModel(url, { sha256: '0'.repeat(64) }), { status: 'format', message: new RegExp(sum) });
  assert.ok((await bytesOf(await cachedModel(url, { sha256: sum.toUpperCase() }))).equals(file));
  assert.equal(asked.length, 2);
});

test('an_aborted_download_keeps_its_parts', async () => {
  const stop = new AbortController();
  await assert.rejects(cachedModel(url, { signal: stop.signal, progress: ({ done }) => done > (16 << 20) + 5 && stop.abort(new Error('enough')) }), { message: 'enough' });
  assert.ok((await bytesOf(await cachedModel(url))).equals(file));
  assert.deepEqual(asked, [undefined, `bytes=${16 << 20}-`]);
});

test('what_cannot_be_fetched_is_said', async () => {
  await assert.rejects(cachedModel('http://127.0.0.1:1/model.gguf'), { status: 'io' });
});
