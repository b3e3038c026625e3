// The error function, to 5e-7 (Abramowitz and Stegun 7.1.28, one term at a time; near zero its series).
float erfOf(float x) {
  const float a = abs(x);
  if (a < 0.5) {
    const float s = x * x;
    return x * (1.12837917 + s * (-0.37612639 + s * (0.11283792 + s * (-0.02686617 + s * 0.00522398))));
  }
  const float p =
      1.0 + a * (0.0705230784 + a * (0.0422820123 + a * (0.0092705272 +
      a * (0.0001520143 + a * (0.0002765672 + a * 0.0000430638)))));
  const float q = p * p * p * p;
  return sign(x) * (1.0 - 1.0 / (q * q * q * q));
}
