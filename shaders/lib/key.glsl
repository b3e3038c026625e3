// Order of floats as unsigned integers, from their bits: no number is the least, both zeros are one (see TopPush).
uint keyOf(uint bits) {
  const uint sign = 0x80000000u;
  const uint infinity = 0x7f800000u;
  if (bits >= sign) {
    return bits == sign ? sign : bits - sign >= infinity ? 0u : ~bits;
  }
  return bits > infinity ? 0u : bits | sign;
}
