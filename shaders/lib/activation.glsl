// Activations of a feed-forward and their functions.

// The usual activations, of float or vec4.
#define ORIEL_SILU(x) ((x) / (1.0 + exp(-(x))))
#define ORIEL_GELU(x) ((x) / (1.0 + exp(-2.0 * kGeluScale * ((x) + kGeluCubic * (x) * (x) * (x)))))

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

// tanh x, to a few units in the last place and for every x: what devices have may overflow, or cancel near 0.
float tanhOf(float x) {
  const float size = abs(x);
  if (size < 0.625) {  // the first terms of Lambert's continued fraction
    const float z = x * x;
    return x * ((((z + 378.0) * z + 17325.0) * z + 135135.0) /
                (((28.0 * z + 3150.0) * z + 62370.0) * z + 135135.0));
  }
  const float far = 1.0 - 2.0 / (exp(2.0 * min(size, 20.0)) + 1.0);
  return x < 0.0 ? -far : far;
}
