// Decimal numbers as text, independent of the locale.
#pragma once

#include <cmath>

namespace oriel_internal {

/// Parses digits with a point and an exponent ("-1.5e-3") to about 16 digits. *end is the end of the number. False: no
/// digits.
inline bool readDecimal(const char* text, const char** end, double* value) {
  const bool minus = *text == '-';
  text += minus ? 1 : 0;
  double digits = 0;
  int exponent = 0;
  bool any = false;
  bool after_point = false;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !after_point); ++text) {
    if (*text == '.') {
      after_point = true;
      continue;
    }
    digits = digits * 10 + (*text - '0');
    exponent -= after_point ? 1 : 0;
    any = true;
  }
  if (any && (*text == 'e' || *text == 'E')) {
    const bool down = text[1] == '-';
    int power = 0;
    for (text += down || text[1] == '+' ? 2 : 1; *text >= '0' && *text <= '9'; ++text) {
      power = power < 1000 ? power * 10 + (*text - '0') : power;
    }
    exponent += down ? -power : power;
  }
  const double scale = std::pow(10.0, exponent < 0 ? -exponent : exponent);
  *value = (minus ? -digits : digits);
  *value = exponent < 0 ? *value / scale : *value * scale;
  *end = text;
  return any;
}

}  // namespace oriel_internal
