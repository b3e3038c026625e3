// Oriel with vite. `scripts/web.sh build` makes the package build/web/oriel-0.2.0.tgz. Then, in a copy of this folder:
//
//     npm install
//     npm install PATH/TO/oriel-0.2.0.tgz
//     mkdir public && cp PATH/TO/models/oriel-tiny/oriel-tiny-q8_0.gguf public/model.gguf
//     npm run dev
//
// `npm run build` writes the site to `dist`. Serve it with the two headers below, or the model gets one thread.
import { defineConfig } from 'vite';

// With these headers the page may share memory, and the model gets several threads.
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

export default defineConfig({
  server: { headers },
  preview: { headers },
  // The dev server must not move the package away from its worker and its .wasm files.
  optimizeDeps: { exclude: ['oriel'] },
});
