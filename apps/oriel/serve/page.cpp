#include "serve/page.h"

namespace cli {
namespace {

constexpr char kPage[] = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Oriel</title>
<style>
:root { --back: #fff; --text: #1a1d21; --quiet: #667079; --line: #d9dee3; --mine: #e8f0fa; --accent: #1f5fb0; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16191d; --text: #e6e9ec; --quiet: #98a2ab; --line: #333a41; --mine: #22303f; --accent: #7db1ee; }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; font: 16px/1.5 system-ui, sans-serif; background: var(--back);
  color: var(--text); }
header, main, form { width: 100%; max-width: 46rem; margin: 0 auto; padding: .75rem 1rem; }
header { display: flex; align-items: center; gap: .75rem; border-bottom: 1px solid var(--line); }
h1 { font-size: 1rem; margin: 0; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
h1 span { color: var(--quiet); font-weight: normal; }
main { flex: 1; overflow-y: auto; }
.turn { margin: 0 0 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.user { background: var(--mine); border-radius: .75rem; padding: .5rem .75rem; margin-left: 15%; width: fit-content;
  margin-inline-start: auto; max-width: 85%; }
.thought { color: var(--quiet); font-size: .875rem; border-left: 2px solid var(--line); padding-left: .75rem;
  margin-bottom: .5rem; }
.thought:empty { display: none; }
.note { color: var(--quiet); font-size: .8125rem; }
.error { color: #b3261e; }
@media (prefers-color-scheme: dark) { .error { color: #f2a09a; } }
form { display: flex; gap: .5rem; align-items: flex-end; border-top: 1px solid var(--line); }
textarea { flex: 1; min-width: 0; resize: none; font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .75rem; max-height: 40vh; }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem .875rem; cursor: pointer; }
#send { background: var(--accent); border-color: var(--accent); color: var(--back); min-width: 4.5rem; }
button:focus-visible, textarea:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
</style>
<header><h1>Oriel <span id="model"></span></h1><button id="new" type="button">New chat</button></header>
<main id="log" aria-live="polite"><p class="note" id="hint">Nothing you write here leaves the machine that this
server runs on.</p></main>
<form id="form"><textarea id="text" rows="1" placeholder="Message" aria-label="Message" autofocus></textarea>
<button id="send">Send</button></form>
<script>
'use strict';
const find = id => document.getElementById(id);
const log = find('log'), text = find('text'), send = find('send');
let messages = [], running = null;
let key = sessionStorage.getItem('key') || '';

async function ask(path, options = {}) {
  for (;;) {
    const headers = {'Content-Type': 'application/json'};
    if (key) headers.Authorization = 'Bearer ' + key;
    const answer = await fetch(path, {...options, headers});
    if (answer.status !== 401) return answer;
    key = prompt('This server asks for an API key') || '';
    if (!key) return answer;
    sessionStorage.setItem('key', key);
  }
}

function add(kind, content = '') {
  const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const node = document.createElement('div');
  node.className = kind;
  node.textContent = content;
  log.append(node);
  if (at_end) log.scrollTop = log.scrollHeight;
  return node;
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data: ') && line !== 'data: [DONE]') yield JSON.parse(line.slice(6));
    }
  }
}

function describe(extra, reason) {
  if (!extra) return '';
  const parts = [];
  if (extra.decode_tokens_per_s > 0) parts.push(Math.round(extra.decode_tokens_per_s) + ' tokens/s');
  parts.push('window ' + extra.window_used + '/' + extra.window_capacity);
  if (extra.evicted) parts.push(extra.evicted + ' tokens forgotten');
  if (reason === 'length') parts.push('cut off');
  return parts.join(' · ');
}

async function reply() {
  const mine = messages;
  const thought = add('turn thought'), answer = add('turn');
  running = new AbortController();
  send.textContent = 'Stop';
  let note = '', failed = false;
  try {
    const got = await ask('/v1/chat/completions',
      {method: 'POST', signal: running.signal, body: JSON.stringify({messages, stream: true})});
    if (!got.ok) throw new Error((await got.json()).error.message);
    for await (const event of events(got.body)) {
      if (event.error) throw new Error(event.error.message);
      const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
      const choice = event.choices[0];
      thought.textContent += choice.delta.reasoning_content || '';
      answer.textContent += choice.delta.content || '';
      if (choice.finish_reason) note = describe(event.oriel, choice.finish_reason);
      if (at_end) log.scrollTop = log.scrollHeight;
    }
  } catch (error) {
    failed = error.name !== 'AbortError';
    note = failed ? error.message : 'stopped';
  }
  if (mine !== messages) return;  // a new chat has begun
  if (answer.textContent) mine.push({role: 'assistant', content: answer.textContent});
  else mine.pop();  // what was not answered was not asked
  if (note) add(failed ? 'turn note error' : 'turn note', note);
  running = null;
  send.textContent = 'Send';
  text.focus();
}

function fit() {
  text.style.height = 'auto';
  text.style.height = text.scrollHeight + 2 + 'px';
}

find('form').addEventListener('submit', event => {
  event.preventDefault();
  if (running) return running.abort();
  const content = text.value.trim();
  if (!content) return;
  find('hint')?.remove();
  messages.push({role: 'user', content});
  add('turn user', content);
  log.scrollTop = log.scrollHeight;
  text.value = '';
  fit();
  reply();
});
text.addEventListener('input', fit);
text.addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (!running) find('form').requestSubmit();
  }
});
find('new').addEventListener('click', () => {
  running?.abort();
  running = null;
  send.textContent = 'Send';
  messages = [];
  log.replaceChildren();
  text.focus();
});
ask('/v1/models').then(got => got.json()).then(got => { find('model').textContent = got.data[0].id; })
  .catch(() => {});
</script>
</html>
)page";

}  // namespace

std::string_view chatPage() { return {kPage, sizeof(kPage) - 1}; }

}  // namespace cli
