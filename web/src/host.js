// The worker of a model: a Web Worker, or one of Node's threads.
const inNode = typeof process === 'object' && !!process.versions && !!process.versions.node;
const NodeWorker = inNode ? (await import('node:worker_threads')).Worker : null;

export class Host {
  /** `given`: the worker's script, where a bundler has put it somewhere else. */
  constructor(given) {
    this.worker = inNode ? new NodeWorker(given || new URL('./engine/worker.js', import.meta.url))
      : given ? new Worker(given) : new Worker(new URL('./engine/worker.js', import.meta.url));
  }
  send(message) {
    this.worker.postMessage(message);
  }
  onMessage(hear) {
    if (inNode) this.worker.on('message', hear);
    else this.worker.onmessage = (event) => hear(event.data);
  }
  onError(hear) {
    if (inNode) this.worker.on('error', hear).on('exit', (code) => hear(new Error(`it ended with code ${code}`)));
    else this.worker.onerror = hear;
  }
  /** Node goes on running while somebody waits for an answer, and not for an idle model. */
  ref(waiting) {
    if (!inNode) return;
    if (waiting) this.worker.ref();
    else this.worker.unref();
  }
  end() {
    this.worker.terminate();
  }
}
