// The Node addon as an engine, and model files for it.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const { Engine } = require('./engine.js');
const { hostOf } = require('./host.js');

const PIECE_BYTES = 8 << 20;

/** Memory of this process, by addresses that the addon gave. */
class ProcessMemory {
  mostBytes = 2 ** 53;
  mostPlanBytes = Infinity;

  constructor(addon) {
    this.pointerBytes = addon.pointerBytes();
    this.read = addon.read;
    this.write = addon.write;
    this.text = addon.text;
  }
  size() {
    return {};
  }
}

function startAddon(file) {
  const addon = require(file);
  const engine = new Engine(addon, new ProcessMemory(addon));
  const host = hostOf(null, () => engine);
  addon.setHooks(host);
  return engine.begin(host);
}

/** A source as a file with a name: the library reads it directly. Other sources become temporary
 * files until they are closed. */
function inFile(source) {
  if (source.path) return source;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'oriel-'));
  const name = path.join(folder, 'model.gguf');
  const remove = () => fs.rmSync(folder, { recursive: true, force: true });
  try {
    const file = fs.openSync(name, 'wx', 0o600);
    const piece = Buffer.alloc(Math.min(PIECE_BYTES, source.size));
    for (let at = 0; at < source.size; at += piece.length) {
      const part = piece.subarray(0, Math.min(piece.length, source.size - at));
      source.read(at, part);
      fs.writeSync(file, part);
    }
    fs.closeSync(file);
  } catch (error) {
    remove();
    throw error;
  }
  source.close();
  return { path: name, size: source.size, close: remove };
}

module.exports = { startAddon, inFile };
