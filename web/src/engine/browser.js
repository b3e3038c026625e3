// The worker in browsers, and each of its threads. make.mjs puts it with everything that it requires into
// dist/worker.js.
'use strict';

const { serve } = require('./worker.js');
const { OrielFailure } = require('./values.js');

const MOST_READ_BYTES = 4 << 20;
const MOST_HELD_BYTES = 8 << 20;

const platform = {
  port: self,

  async build(threads, { assets }) {
    const address = threads ? assets.threads : assets.single;
    const response = await fetch(address);
    if (!response.ok) throw new OrielFailure(2, `${address} answered ${response.status}: check where the package lies`);
    const code = await WebAssembly.compile(await response.arrayBuffer());
    const create = threads ? require('./oriel-threads.js') : require('./oriel.js');
    return { create, code, shared: threads, script: self.location.href };  // the module passes a script to its threads
  },

  openFile: () => null,

  /** Reads as the module asks, so that the file is never in memory as a whole. */
  fromBlob(blob) {
    const reader = new FileReaderSync();
    return {
      size: blob.size,
      read(offset, into) {
        for (let at = 0; at < into.byteLength; at += MOST_READ_BYTES) {
          const end = Math.min(at + MOST_READ_BYTES, into.byteLength);
          into.set(new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset + at, offset + end))), at);
        }
      },
      close() {},
    };
  },

  /** Into a Blob, which the browser may put on disk. */
  gather() {
    let blob = new Blob([]);
    let waiting = [];
    let held = 0;
    const fold = () => {
      blob = new Blob([blob, ...waiting]);
      waiting = [];
      held = 0;
    };
    return {
      add(piece) {
        waiting.push(piece);
        held += piece.byteLength;
        if (held > MOST_HELD_BYTES) fold();
      },
      end() {
        fold();
        return platform.fromBlob(blob);
      },
    };
  },
};

// A thread of the module is this script again, under another name.
if (self.name === 'oriel-thread') {
  require('./oriel-threads.worker.js');
} else {
  const receive = serve(platform);
  self.onmessage = (event) => receive(event.data);
}
