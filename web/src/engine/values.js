// What an app may pass: numbers, texts, JSON and bytes. What cannot be passed on as it is given is refused.
'use strict';

class OrielFailure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const shown = (value) => (value && typeof value === 'object' ? 'an object' : typeof value === 'string' ? JSON.stringify(value) : String(value));

/** Refuses what is no whole number from `least` to `most`. */
function whole(name, value, least, most) {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OrielFailure(1, `${name} is ${shown(value)}: give a whole number from ${least} to ${most}`);
}

/** Refuses what a float cannot hold, or holds as 0, which means a default. */
function single(name, value) {
  const held = typeof value === 'number' ? Math.fround(value) : NaN;
  if (Number.isFinite(held) && (held === 0) === (value === 0)) return held;
  throw new OrielFailure(1, `${name} is ${shown(value)}: give a number that 32 bits can hold`);
}

/** Refuses halves of surrogate pairs rather than passing on something else than was written. */
function wholeText(text) {
  if (typeof text !== 'string') throw new OrielFailure(1, `${shown(text)} is no text: give a string`);
  if (/[\ud800-\udfff]/u.test(text)) throw new OrielFailure(1, 'a text has half of a surrogate pair: cut strings between whole characters');
  return text;
}

/** JSON of a value, all of whose texts are whole. */
function jsonOf(value) {
  const checked = (key, inner) => {
    wholeText(key);
    return typeof inner === 'string' ? wholeText(inner) : inner;
  };
  try {
    return JSON.stringify(value, checked);
  } catch (error) {
    throw error instanceof OrielFailure ? error : new OrielFailure(1, 'a value cannot be written as JSON: give none that holds itself, and no BigInt');
  }
}

/** An address or a size of 32 bits, which WebAssembly passes to JavaScript as a signed number. */
const unsigned = (word) => word >>> 0;

/** Text as it was written: a U+FEFF at its beginning is part of it. */
const decode = (bytes) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** The bytes of an ArrayBuffer or a view of one. */
function bytesFrom(data) {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer || (typeof SharedArrayBuffer !== 'undefined' && data instanceof SharedArrayBuffer)) return new Uint8Array(data);
  throw new OrielFailure(1, `${shown(data)} is no bytes: give a Uint8Array or an ArrayBuffer`);
}

module.exports = { OrielFailure, whole, single, wholeText, jsonOf, unsigned, decode, bytesFrom };
