// Values between JavaScript and the library: options, numbers, texts, JSON and bytes. A value that cannot be passed
// unchanged is refused.
'use strict';

class OrielFailure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const shown = (value) => (value && typeof value === 'object' ? 'an object' : typeof value === 'string' ? JSON.stringify(value) : String(value));

/** Refuses everything except whole numbers from `least` to `most`. */
function whole(name, value, least, most) {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OrielFailure(1, `${name} is ${shown(value)}: give a whole number from ${least} to ${most}`);
}

/** Refuses halves of surrogate pairs rather than passing on something else than was written. */
function wholeText(text) {
  if (typeof text !== 'string') throw new OrielFailure(1, `${shown(text)} is no text: give a string`);
  if (/[\ud800-\udfff]/u.test(text)) throw new OrielFailure(1, 'a text has half of a surrogate pair: cut strings between whole characters');
  return text;
}

/** JSON of a value; all its strings must be well-formed. */
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

/** window_tokens is windowTokens. */
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** JSON of the library, with names in camelCase. */
function parse(text) {
  const isObject = (value) => value && typeof value === 'object' && !Array.isArray(value);
  const renamed = (object) => Object.fromEntries(Object.entries(object).map(([name, value]) => [camel(name), value]));
  return JSON.parse(text, (_, value) => (isObject(value) ? renamed(value) : value));
}

/** All digits of a number: the library reads no exponents. */
function digitsOf(number) {
  if (Number.isInteger(number)) return BigInt(number).toString();
  return String(number).replace(/^(-?)(\d)\.?(\d*)e-(\d+)$/, (_, sign, first, rest, power) => `${sign}0.${'0'.repeat(power - 1)}${first}${rest}`);
}

function settingOf(value) {
  if (typeof value === 'number') return digitsOf(value);
  if (value instanceof Date) return digitsOf(value.getFullYear() * 10000 + (value.getMonth() + 1) * 100 + value.getDate());
  if (Array.isArray(value) && value.every((item) => typeof item === 'number')) return value.map(digitsOf).join(',');
  return typeof value === 'object' ? jsonOf(value) : String(value);
}

/**
 * Options as the library takes them: [name, value, name, value, ...]. undefined, null and an empty list leave the default.
 * A list of texts gives the name once for each; other lists and objects become JSON.
 */
function settingsOf(options) {
  const texts = [];
  for (const [key, value] of Object.entries(options)) {
    const name = snake(key);
    if (camel(name) !== key) throw new OrielFailure(1, `the option ${JSON.stringify(key)} is not known: did you mean "${camel(name)}"?`);
    if (value === undefined || value === null || value.length === 0 && Array.isArray(value)) continue;
    const repeated = Array.isArray(value) && value.every((item) => typeof item === 'string');
    for (const item of repeated ? value : [value]) texts.push(name, settingOf(item));
  }
  return texts;
}

/** `bits`: {name: bit}. The bits of options that are set. */
function flagsOf(options, bits) {
  let flags = 0;
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(bits, name)) throw new OrielFailure(1, `the option ${JSON.stringify(name)} is not known: give ${Object.keys(bits).join(' or ')}`);
    if (value) flags |= bits[name];
  }
  return flags;
}

/** `numbers`: {name: number}. The number of a named value. */
function oneOf(name, value, numbers) {
  if (typeof value === 'string' && Object.hasOwn(numbers, value)) return numbers[value];
  throw new OrielFailure(1, `${name} is ${shown(value)}: give ${Object.keys(numbers).join(', ')}`);
}

/** An address or a size of 32 bits, which WebAssembly passes to JavaScript as a signed number. */
const unsigned = (word) => word >>> 0;

/** The unchanged text: a U+FEFF at its beginning is part of it. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const decode = (bytes) => decoder.decode(bytes);

/** The bytes of an ArrayBuffer or a view of one. */
function bytesFrom(data) {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer || (typeof SharedArrayBuffer !== 'undefined' && data instanceof SharedArrayBuffer)) return new Uint8Array(data);
  throw new OrielFailure(1, `${shown(data)} is no bytes: give a Uint8Array or an ArrayBuffer`);
}

module.exports = { OrielFailure, whole, wholeText, jsonOf, camel, parse, settingsOf, flagsOf, oneOf, unsigned, decode, bytesFrom };
