import { defineConfig } from 'vite';

// With these headers the page may share memory, and the model gets several threads.
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

export default defineConfig({
  server: { headers },
  preview: { headers },
  // The dev server must not move the package away from its worker and its .wasm files.
  optimizeDeps: { exclude: ['oriel'] },
});
