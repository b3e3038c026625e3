// Oriel in browsers. Bundlers copy the worker and the module: they read `new URL(FILE, import.meta.url)` as it stands here.
import { orielOn } from './oriel.js';

export { OrielError, statusNames } from './oriel.js';

class Host {
  /** `given`: the address of dist/worker.js, where it was put somewhere else. */
  constructor(given) {
    this.worker = given ? new Worker(given) : new Worker(new URL('../dist/worker.js', import.meta.url));
  }
  send(message) {
    this.worker.postMessage(message);
  }
  onMessage(hear) {
    this.worker.onmessage = (event) => hear(event.data);
  }
  onError(hear) {
    this.worker.onerror = hear;
  }
  ref() {}
  end() {
    this.worker.terminate();
  }
}

/** A worker resolves relative addresses against its own, so it gets absolute ones. */
const absolute = (address) => new URL(address, globalThis.location.href).href;

export const Oriel = orielOn({
  Host,
  addonFor: () => undefined,
  processors: () => navigator.hardwareConcurrency || 1,
  shares: () => typeof SharedArrayBuffer === 'function' && globalThis.crossOriginIsolated === true,
  place: (source) => (source instanceof URL || typeof source === 'string' ? absolute(source) : source),
  assets: (folder) => (folder
    ? { single: absolute(`${folder}oriel.wasm`), threads: absolute(`${folder}oriel-threads.wasm`) }
    : {
      single: new URL('../dist/oriel.wasm', import.meta.url).href,
      threads: new URL('../dist/oriel-threads.wasm', import.meta.url).href,
    }),
});
