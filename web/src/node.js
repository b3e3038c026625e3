// Oriel in Node.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { OrielError, orielOn } from './oriel.js';

export { OrielError, statusNames } from './oriel.js';

class Host {
  /** `given`: another script for the worker. */
  constructor(given) {
    this.worker = new Worker(given || new URL('./engine/node.js', import.meta.url));
  }
  send(message) {
    this.worker.postMessage(message);
  }
  onMessage(hear) {
    this.worker.on('message', hear);
  }
  onError(hear) {
    this.worker.on('error', hear).on('exit', (code) => hear(new Error(`it ended with code ${code}`)));
  }
  /** Node goes on running while a request waits for an answer, and not for an idle model. */
  ref(waiting) {
    if (waiting) this.worker.ref();
    else this.worker.unref();
  }
  end() {
    this.worker.terminate();
  }
}

const ours = fileURLToPath(new URL(`../prebuilds/${process.platform}-${process.arch}/oriel.node`, import.meta.url));
const load = createRequire(import.meta.url);

/** The path of the addon that `engine` and the system allow; undefined: the WebAssembly module. */
function addonFor({ engine = 'auto', worker }) {
  const given = typeof engine === 'string' && engine.endsWith('.node');
  if (!given && !['auto', 'native', 'wasm'].includes(engine)) {
    throw new OrielError(`engine is ${JSON.stringify(engine)}: give auto, native, wasm or the path of an addon`, 1);
  }
  const addon = given ? engine : ours;
  if (engine === 'wasm' || worker || (engine === 'auto' && !existsSync(addon))) return undefined;
  try {
    load(addon);
    return addon;
  } catch (error) {
    if (engine === 'auto') return undefined;
    throw new OrielError(`the native addon cannot be loaded (${error.message.split('\n')[0]}): build it, or leave out engine`, 2);
  }
}

export const Oriel = orielOn({
  Host,
  addonFor,
  processors: () => cpus().length || 1,
  shares: () => true,
  place: (source) => (source instanceof URL ? source.href : source),
  assets: () => undefined,
});
