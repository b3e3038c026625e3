// Oriel in Node.
import { cpus } from 'node:os';
import { Worker } from 'node:worker_threads';
import { orielOn } from './oriel.js';

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

export const Oriel = orielOn({
  Host,
  processors: () => cpus().length || 1,
  shares: () => true,
  place: (source) => (source instanceof URL ? source.href : source),
  assets: () => undefined,
});
