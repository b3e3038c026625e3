// SHA-256 (FIPS 180-4) of data that comes in pieces: the browser's own takes it whole.

const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const primes = [];
for (let n = 2; primes.length < 64; ++n) if (primes.every((prime) => n % prime)) primes.push(n);
const INITIAL = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const BLOCK = 64;

export class Sha256 {
  #state = Int32Array.from(INITIAL);
  #words = new Int32Array(64);
  #rest = new Uint8Array(BLOCK);  // of a block that is not full
  #restBytes = 0;
  #bytes = 0;

  update(data) {
    this.#bytes += data.length;
    let at = 0;
    if (this.#restBytes) {
      at = Math.min(BLOCK - this.#restBytes, data.length);
      this.#rest.set(data.subarray(0, at), this.#restBytes);
      this.#restBytes += at;
      if (this.#restBytes < BLOCK) return this;
      this.#block(this.#rest, 0);
    }
    for (; at + BLOCK <= data.length; at += BLOCK) this.#block(data, at);
    this.#rest.set(data.subarray(at));
    this.#restBytes = data.length - at;
    return this;
  }

  /** The sum in hexadecimal; nothing more may be added. */
  hex() {
    const end = new Uint8Array(this.#restBytes < 56 ? BLOCK - this.#restBytes : 2 * BLOCK - this.#restBytes);
    const bits = this.#bytes * 8;
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(end.length - 4, bits >>> 0);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #block(data, at) {
    const w = this.#words;
    for (let i = 0; i < 16; ++i, at += 4) w[i] = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3];
    for (let i = 16; i < 64; ++i) {
      const [x, y] = [w[i - 15], w[i - 2]];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state;
    for (let i = 0; i < 64; ++i) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (this.#state[i] = (this.#state[i] + word) | 0));
  }
}
