// Keeps the page and its model, so that it works without a network. Files from the network have priority.
const kept = 'oriel-1';
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET' || !event.request.url.startsWith(self.registration.scope)) return;
  event.respondWith((async () => {
    const cache = await caches.open(kept);
    try {
      const answer = await fetch(event.request);
      if (answer.ok) await cache.put(event.request, answer.clone());
      return answer;
    } catch (error) {
      const answer = await cache.match(event.request);
      if (answer) return answer;
      throw error;
    }
  })());
});
self.addEventListener('message', (event) => {
  // The first visit's files were asked for before this worker was there.
  event.waitUntil(caches.open(kept).then((cache) => cache.addAll(event.data)));
});
