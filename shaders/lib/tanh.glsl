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
