#include "grammar/schema_patterns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace oriel_internal {
namespace {

constexpr int64_t kMostExponent = 1000000;
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                              1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};

bool isDigit(char c) { return c >= '0' && c <= '9'; }

int64_t readExponent(const char* at, const char* end) {
  const bool negative = at != end && *at == '-';
  at += at != end && !isDigit(*at) ? 1 : 0;
  int64_t value = 0;
  for (; at != end; ++at) {
    value = std::min(value * 10 + (*at - '0'), kMostExponent);
  }
  return negative ? -value : value;
}

}  // namespace

bool readDecimal(const JsonText& text, Decimal* decimal) {
  const char* at = text.data;
  const char* const end = text.data + text.bytes;
  *decimal = {};
  decimal->negative = *at == '-';
  at += decimal->negative ? 1 : 0;
  const char* const mantissa_end =
      std::find_if(at, end, [](char c) { return c == 'e' || c == 'E'; });
  int64_t point = std::find(at, mantissa_end, '.') - at;  // digits before the point
  point += mantissa_end != end ? readExponent(mantissa_end + 1, end) : 0;
  // Counts digits from the first to the last nonzero one; `skipped` counts the digits before.
  const auto counts = [](char c) { return c >= '1' && c <= '9'; };
  const char* const first = std::find_if(at, mantissa_end, counts);
  if (first == mantissa_end) {
    *decimal = {};
    return true;
  }
  const char* last = mantissa_end;
  while (!counts(last[-1])) {
    --last;
  }
  const int64_t skipped = std::count_if(at, first, isDigit);
  const int64_t n_digits = std::count_if(first, last, isDigit);
  point -= skipped;
  const int64_t n_whole = std::max<int64_t>(point, 1);
  const int64_t n_fraction = std::max<int64_t>(n_digits - point, 0);
  decimal->n_whole = static_cast<uint8_t>(std::min<int64_t>(n_whole, Decimal::kMostDigits));
  if (n_whole + n_fraction > Decimal::kMostDigits) {
    return false;
  }
  decimal->n_fraction = static_cast<uint8_t>(n_fraction);
  std::fill_n(decimal->digits, n_whole + n_fraction, '0');
  char* to = decimal->digits + n_whole - point;
  for (at = first; at != last; ++at) {
    if (isDigit(*at)) {
      *to++ = *at;
    }
  }
  return true;
}

bool readBound(const JsonText& text, Decimal* decimal) {
  if (readDecimal(text, decimal)) {
    return true;
  }
  if (decimal->n_whole < Decimal::kMostDigits) {
    return false;
  }
  std::fill_n(decimal->digits, Decimal::kMostDigits, '9');
  return true;
}

Decimal decimalOf(int64_t value) {
  Decimal decimal;
  decimal.negative = value < 0;
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char reversed[24];
  uint32_t n = 0;
  do {
    reversed[n++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  std::reverse_copy(reversed, reversed + n, decimal.digits);
  decimal.n_whole = static_cast<uint8_t>(n);
  return decimal;
}

uint32_t Decimal::significantDigits() const {
  const uint32_t n = n_whole + n_fraction;
  uint32_t first = 0;
  while (first < n && digits[first] == '0') {
    ++first;
  }
  uint32_t last = n;
  while (last > first && digits[last - 1] == '0') {
    --last;
  }
  return last - first;
}

int compareDecimals(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) {
    return a.negative ? -1 : 1;
  }
  const int sign = a.negative ? -1 : 1;
  if (a.n_whole != b.n_whole) {
    return a.n_whole < b.n_whole ? -sign : sign;
  }
  const uint32_t n = a.n_whole + std::max<uint32_t>(a.n_fraction, b.n_fraction);
  for (uint32_t i = 0; i < n; ++i) {
    const char x = i < a.n_whole ? a.digits[i] : a.fraction(i - a.n_whole);
    const char y = i < b.n_whole ? b.digits[i] : b.fraction(i - b.n_whole);
    if (x != y) {
      return x < y ? -sign : sign;
    }
  }
  return 0;
}

bool asCount(const JsonValue& value, uint32_t most, uint32_t* count) {
  Decimal decimal;
  if (!value.isNumber() || !readDecimal(value.text(), &decimal) || decimal.negative ||
      !decimal.isInteger()) {
    return false;
  }
  uint64_t n = 0;
  for (uint32_t i = 0; i < decimal.n_whole; ++i) {
    n = std::min<uint64_t>(n * 10 + static_cast<uint64_t>(decimal.digits[i] - '0'), most);
  }
  *count = static_cast<uint32_t>(n);
  return true;
}

bool asStep(const Decimal& decimal, Step* step) {
  uint64_t n = 0;
  if (decimal.negative || decimal.isZero() || decimal.n_fraction > 20 ||
      decimal.significantDigits() > 15 || decimal.n_whole > 15) {
    return false;
  }
  for (uint32_t i = 0; i < decimal.n_whole + uint32_t{decimal.n_fraction}; ++i) {
    n = n * 10 + static_cast<uint64_t>(decimal.digits[i] - '0');
  }
  *step = {n, decimal.n_fraction};
  return true;
}

bool dividesAsDouble(uint64_t digits, uint32_t places, const Step& step) {
  const double value = static_cast<double>(digits) / kPowers[places];
  const double quotient = value / (static_cast<double>(step.digits) / kPowers[step.places]);
  return quotient == std::floor(quotient) && std::isfinite(quotient);
}

bool isMultiple(const Decimal& value, const Step& step) {
  if (value.n_fraction > step.places) {
    return false;
  }
  uint64_t rest = 0;
  uint64_t digits = 0;
  bool small = true;
  for (uint32_t i = 0; i < value.n_whole + step.places; ++i) {
    const char c = i < value.n_whole ? value.digits[i] : value.fraction(i - value.n_whole);
    rest = (rest * 10 + static_cast<uint64_t>(c - '0')) % step.digits;
    small = small && digits < (uint64_t{1} << 53) / 10;
    digits = small ? digits * 10 + static_cast<uint64_t>(c - '0') : 0;
  }
  return rest == 0 && (!small || dividesAsDouble(digits, step.places, step));
}

namespace {

constexpr int64_t kLargestInteger = (int64_t{1} << 53) - 1;
constexpr uint32_t kMostDigits = 15;
constexpr uint32_t kMostDigitsOfDouble = 17;  // where rounding cannot cross a bound
constexpr uint32_t kMoreDigits = 4;           // in addition to the bound's digits
constexpr uint32_t kMostRemainders = 1000;
constexpr uint32_t kMostStates = 32000;
// Digits times remainders: limit before merging equivalent states, which may merge little.
constexpr uint64_t kMostRemainderStates = 12000;
constexpr uint64_t kMostOddRemainderStates = 3000;
constexpr uint64_t kLeastDigits = 6;
// Doubles cannot hold some fractions exactly, so up to this many steps of the last place are tried one by one. Few
// enough states, and enough for prices.
constexpr uint64_t kMostTried = 2000;

// Bounds on the magnitude of numbers with one sign.
struct Side {
  bool none = false;  ///< this sign is excluded
  bool has_low = false;
  bool has_high = false;
  bool above_low = false;
  bool below_high = false;
  Decimal low;
  Decimal high;
};

Decimal magnitude(Decimal decimal) {
  decimal.negative = false;
  return decimal;
}

Side sideOf(const NumberFacts& facts, bool negative) {
  Side side;
  // Lower and upper bound of the magnitude.
  const bool has_high = negative ? facts.has_min : facts.has_max;
  const bool has_low = negative ? facts.has_max : facts.has_min;
  const Decimal& high = negative ? facts.min : facts.max;
  const Decimal& low = negative ? facts.max : facts.min;
  const bool is_apart = has_high && (high.isZero() ? negative : high.negative != negative);
  const bool is_beyond = has_low && low.negative == negative && low.n_whole == Decimal::kMostDigits;
  if (is_apart || is_beyond) {  // such numbers have too many digits
    side.none = true;
    return side;
  }
  side.has_high = has_high;
  side.high = magnitude(high);
  side.below_high = negative ? facts.above_min : facts.below_max;
  if (has_low && !low.isZero() && low.negative == negative) {
    side.has_low = true;
    side.low = magnitude(low);
    side.above_low = negative ? facts.below_max : facts.above_min;
  } else if (negative || (has_low && low.isZero() && facts.above_min)) {
    side.has_low = side.above_low = true;  // zero is written without a sign
    side.low = {};
  }
  return side;
}

// Above 2^53 doubles are further apart than integers. A decimal above an exclusive bound may equal it as a double, so
// the bound moves by one unit of its 15th digit and becomes inclusive.
void includeLargeBounds(Side* side) {
  const auto move = [](Decimal* bound, bool up) {
    uint32_t at = kMostDigits;
    std::fill(bound->digits + at, bound->digits + bound->n_whole, '0');
    bound->n_fraction = 0;
    const char last = up ? '9' : '0';
    while (at != 0 && bound->digits[at - 1] == last) {
      bound->digits[--at] = up ? '0' : '9';
    }
    if (at != 0) {
      bound->digits[at - 1] = static_cast<char>(bound->digits[at - 1] + (up ? 1 : -1));
    } else if (bound->n_whole < Decimal::kMostDigits) {  // 999... overflowed to 000...
      bound->digits[0] = '1';
      bound->digits[bound->n_whole++] = '0';
    }
  };
  if (side->has_low && side->above_low && side->low.n_whole > kMostDigits) {
    move(&side->low, true);
    side->above_low = false;
  }
  if (side->has_high && side->below_high && side->high.n_whole > kMostDigits) {
    move(&side->high, false);
    side->below_high = false;
  }
}

// The order of the digits read so far and the digits of a bound.
enum Order : uint8_t { kSame, kLess, kMore };

Order orderOf(char a, char b) { return a == b ? kSame : a < b ? kLess : kMore; }

struct NumberState {
  enum Phase : uint8_t { kStart, kSign, kZero, kWhole, kPoint, kFraction };
  uint8_t phase;
  uint8_t negative;
  uint8_t digits;    ///< read
  uint8_t fraction;  ///< digits after the point
  uint8_t low;       ///< Order
  uint8_t high;
  uint8_t broken;  ///< 1: a digit after the point is not 0 (tracked only if fractions are required)
  uint8_t unused;
  uint32_t rest;   ///< remainder of all digits
  uint32_t value;  ///< value of all digits; kMostTried + 1: above it
};

class NumberAutomaton {
 public:
  NumberAutomaton(const NumberFacts& facts, Work* work) : facts_(facts), work_(work) {
    sides_[0] = sideOf(facts, false);
    sides_[1] = sideOf(facts, true);
    for (Side& side : sides_) {
      includeLargeBounds(&side);
    }
  }

  const char* build(Dfa* dfa) {
    if (!chooseSteps()) {
      return "has too many digits for multipleOf: make it simpler";
    }
    chooseDigits();
    const Alphabet alphabet = makeSymbols();
    if (alphabet.first == nullptr) {
      return "is more than there is memory for: make it simpler";
    }
    const NumberState start = {NumberState::kStart, 0, 0, 0, kSame, kSame, 0, 0, 0, 0};
    const DfaResult result = exploreDfa(
        start, alphabet, kMostStates,
        [this](const NumberState& from, uint32_t symbol, NumberState* to) {
          *to = from;
          return chars_[symbol] != '\0' && step(chars_[symbol], to);
        },
        [this](const NumberState& at) { return accepts(at); }, work_, dfa);
    return result == DfaResult::kTooLarge
               ? "is too complex with the other bounds: make them simpler"
           : result == DfaResult::kNoMemory ? "is more than there is memory for: make it simpler"
                                            : nullptr;
  }

 private:
  // Combines all steps into their least common multiple.
  bool chooseSteps() {
    uint64_t digits = 0;
    for (uint32_t i = 0; i < facts_.n_steps; ++i) {
      places_ = std::max(places_, facts_.steps[i].places);
    }
    for (uint32_t i = 0; i < facts_.n_steps; ++i) {
      uint64_t own = facts_.steps[i].digits;
      for (uint32_t p = facts_.steps[i].places; p < places_; ++p) {
        if (own > (uint64_t{1} << 59)) {
          return false;
        }
        own *= 10;
      }
      digits = digits == 0 ? own : leastCommonMultiple(digits, own);
      if (digits == 0) {
        return false;
      }
    }
    if (digits == 0) {
      return true;
    }
    if (facts_.integer || places_ == 0) {
      for (uint32_t p = 0; p < places_; ++p) {
        digits /= std::gcd(digits, uint64_t{10});
      }
      places_ = 0;
      modulus_ = digits;
      whole_only_ = true;
      return modulus_ <= kMostRemainders && divisorsRoundWell();
    }
    small_step_ = digits;
    for (uint32_t p = 0; p < places_; ++p) {
      fives_ *= 5;
    }
    modulus_ = leastCommonMultiple(digits, fives_);
    // Multiples that doubles hold exactly, and multiples that were tried.
    if (!divisorsRoundWell() || modulus_ == 0 || modulus_ > kMostRemainders) {
      if (places_ > 4 || digits > kMostTried / 4) {
        return false;
      }
      modulus_ = 0;
    }
    tried_ = digits % fives_ != 0;
    return modulus_ != 0 || tried_;
  }

  static uint64_t leastCommonMultiple(uint64_t a, uint64_t b) {
    const uint64_t part = a / std::gcd(a, b);
    return part > (uint64_t{1} << 62) / b ? 0 : part * b;
  }

  // Dividing an exact multiple by the nearest double of a step gives an integer if that double is off by at most half a
  // rounding unit.
  bool divisorsRoundWell() const {
    for (uint32_t i = 0; i < facts_.n_steps; ++i) {
      const Step& step = facts_.steps[i];
      double power = 1;
      for (uint32_t p = 0; p < step.places; ++p) {
        power *= 10;
      }
      const double exact = static_cast<double>(step.digits);
      const double error = std::fma(exact / power, power, -exact) / exact;
      if (std::fabs(error) > 0x1p-54) {
        return false;
      }
    }
    return true;
  }

  void chooseDigits() {
    if (facts_.n_steps == 0) {
      const bool is_near = facts_.fraction || facts_.above_min || facts_.below_max;
      most_digits_ = facts_.integer ? kMostDigits + 1 : is_near ? kMostDigits : kMostDigitsOfDouble;
      for (const Side& side : sides_) {
        most_digits_ =
            std::max<uint32_t>(most_digits_, side.has_low ? side.low.n_whole + kMoreDigits : 0);
      }
      return;
    }
    // Remainders modulo powers of 2 and 5 depend only on the last digits.
    uint64_t odd = std::max<uint64_t>(modulus_, 1);
    for (const uint64_t factor : {2, 5}) {
      for (; odd % factor == 0; odd /= factor) {
      }
    }
    const uint64_t states = odd == 1 ? kMostRemainderStates : kMostOddRemainderStates;
    const uint64_t per_digit = std::max<uint64_t>(modulus_, 1) * (places_ + 1);
    uint64_t digits = std::max(states / per_digit, kLeastDigits);
    for (const Side& side : sides_) {
      if (side.has_low) {
        digits = std::max<uint64_t>(digits, side.low.n_whole + 1u + places_);
      }
    }
    most_digits_ = static_cast<uint32_t>(std::min<uint64_t>(digits, kMostDigits));
  }

  Alphabet makeSymbols() {
    CharRange* const ranges = work_->scratch()->take<CharRange>(12);
    CharSet sets[12];
    if (ranges == nullptr) {
      return {};
    }
    static constexpr char kChars[] = "-.0123456789";
    for (uint32_t i = 0; i < 12; ++i) {
      const uint32_t c = static_cast<uint8_t>(kChars[i]);
      ranges[i] = {c, c};
      sets[i] = {&ranges[i], 1};
    }
    const Alphabet alphabet = makeAlphabet(sets, 12, work_);
    if (alphabet.first != nullptr) {
      for (const char c : kChars) {
        // the last symbol, '\0', is not a character
        chars_[alphabet.symbolOf(static_cast<uint8_t>(c))] = c;
      }
    }
    return alphabet;
  }

  bool step(char c, NumberState* state) const {
    if (c == '-') {
      const bool may = state->phase == NumberState::kStart && !sides_[1].none;
      state->phase = NumberState::kSign;
      state->negative = 1;
      return may;
    }
    if (c == '.') {
      const bool may =
          (state->phase == NumberState::kZero || state->phase == NumberState::kWhole) &&
          !facts_.integer && !whole_only_ && state->digits < most_digits_;
      leaveWhole(state);
      state->phase = NumberState::kPoint;
      return may;
    }
    if (state->phase == NumberState::kStart && sides_[0].none) {
      return false;
    }
    return readDigit(c, state);
  }

  bool readDigit(char c, NumberState* state) const {
    const Side& side = sides_[state->negative];
    if (state->phase == NumberState::kZero || state->digits == most_digits_) {
      return false;
    }
    const bool in_fraction = state->phase >= NumberState::kPoint;
    if (in_fraction && facts_.n_steps != 0 && state->fraction == places_) {
      return false;
    }
    state->broken |= facts_.fraction && in_fraction && c != '0' ? 1 : 0;
    compare(side.has_low, side.low, c, in_fraction, state, &state->low);
    compare(side.has_high, side.high, c, in_fraction, state, &state->high);
    if (facts_.n_steps != 0) {
      const uint32_t digit = static_cast<uint32_t>(c - '0');
      state->rest =
          modulus_ == 0 ? 0 : static_cast<uint32_t>((state->rest * 10ull + digit) % modulus_);
      state->value = tried_ ? std::min<uint32_t>(state->value * 10 + digit, kMostTried + 1) : 0;
    }
    ++state->digits;
    if (!facts_.has_min && !facts_.has_max && state->low == kMore) {
      state->negative = state->low = 0;  // zero has no sign
    }
    state->fraction = static_cast<uint8_t>(state->fraction + (in_fraction ? 1 : 0));
    const bool whole = state->phase == NumberState::kWhole || c != '0';
    const NumberState::Phase in_whole = whole ? NumberState::kWhole : NumberState::kZero;
    state->phase = static_cast<uint8_t>(in_fraction ? NumberState::kFraction : in_whole);
    if (tried_ && state->value * scaleOf(*state) > kMostTried) {
      state->value = kMostTried + 1;
    }
    return true;
  }

  static void compare(bool has, const Decimal& bound, char c, bool in_fraction,
                      const NumberState* state, uint8_t* order) {
    if (!has) {
      return;
    }
    if (!in_fraction && state->digits >= bound.n_whole) {
      *order = kMore;
    } else if (*order == kSame) {
      *order =
          orderOf(c, in_fraction ? bound.fraction(state->fraction) : bound.digits[state->digits]);
    }
  }

  // Fewer digits before the point: the number is smaller.
  void leaveWhole(NumberState* state) const {
    const Side& side = sides_[state->negative];
    if (side.has_low && state->digits < side.low.n_whole) {
      state->low = kLess;
    }
    if (side.has_high && state->digits < side.high.n_whole) {
      state->high = kLess;
    }
  }

  bool accepts(NumberState state) const {
    if (state.phase != NumberState::kZero && state.phase != NumberState::kWhole &&
        state.phase != NumberState::kFraction) {
      return false;
    }
    if (state.phase != NumberState::kFraction) {
      leaveWhole(&state);
    }
    if (facts_.fraction && state.broken == 0) {
      return false;
    }
    const Side& side = sides_[state.negative];
    if (side.has_low) {
      if (state.low == kSame && state.fraction < side.low.n_fraction) {
        state.low = kLess;
      }
      if (state.low == kLess || (state.low == kSame && side.above_low)) {
        return false;
      }
    }
    if (side.has_high) {
      if (state.high == kSame && state.fraction < side.high.n_fraction) {
        state.high = kLess;
      }
      if (state.high == kMore || (state.high == kSame && side.below_high)) {
        return false;
      }
    }
    return facts_.n_steps == 0 || isMultipleOfAll(state);
  }

  // Places that the number's digits lack compared with the steps' last place.
  uint64_t scaleOf(const NumberState& state) const {
    uint64_t scale = 1;
    for (uint32_t i = state.fraction; i < places_; ++i) {
      scale *= 10;
    }
    return scale;
  }

  bool isMultipleOfAll(const NumberState& state) const {
    const uint64_t scale = scaleOf(state);
    if (modulus_ != 0 && state.rest * (scale % modulus_) % modulus_ == 0) {
      return true;
    }
    const uint64_t value = state.value * scale;
    if (!tried_ || value > kMostTried || value % small_step_ != 0) {
      return false;
    }
    for (uint32_t i = 0; i < facts_.n_steps; ++i) {
      if (!dividesAsDouble(value, places_, facts_.steps[i])) {
        return false;
      }
    }
    return true;
  }

  const NumberFacts& facts_;
  Work* const work_;
  Side sides_[2];
  char chars_[32] = {};  ///< of a symbol
  uint32_t most_digits_ = 0;
  uint32_t places_ = 0;
  uint64_t modulus_ = 1;  ///< 0: only tried multiples
  uint64_t small_step_ = 1;
  uint64_t fives_ = 1;
  bool whole_only_ = false;
  bool tried_ = false;
};

}  // namespace

void NumberFacts::addMin(const Decimal& bound, bool exclusive) {
  const int order = has_min ? compareDecimals(bound, min) : 1;
  above_min = order > 0 ? exclusive : order == 0 ? above_min || exclusive : above_min;
  min = order > 0 ? bound : min;
  has_min = true;
}

void NumberFacts::addMax(const Decimal& bound, bool exclusive) {
  const int order = has_max ? compareDecimals(bound, max) : -1;
  below_max = order < 0 ? exclusive : order == 0 ? below_max || exclusive : below_max;
  max = order < 0 ? bound : max;
  has_max = true;
}

bool NumberFacts::addStep(const Step& step) {
  if (n_steps == kMostSteps) {
    return false;
  }
  steps[n_steps++] = step;
  return true;
}

bool NumberFacts::allows(const Decimal& value) const {
  const int to_min = has_min ? compareDecimals(value, min) : 1;
  const int to_max = has_max ? compareDecimals(value, max) : -1;
  bool multiple = true;
  for (uint32_t i = 0; i < n_steps; ++i) {
    multiple = multiple && isMultiple(value, steps[i]);
  }
  return (!integer || value.isInteger()) && multiple && to_min >= (above_min ? 1 : 0) &&
         to_max <= (below_max ? -1 : 0);
}

bool NumberFacts::operator==(const NumberFacts& other) const {
  const auto same = [](bool has, bool other_has, const Decimal& a, const Decimal& b) {
    return has == other_has && (!has || compareDecimals(a, b) == 0);
  };
  bool steps_same = n_steps == other.n_steps;
  for (uint32_t i = 0; steps_same && i < n_steps; ++i) {
    steps_same =
        steps[i].digits == other.steps[i].digits && steps[i].places == other.steps[i].places;
  }
  return integer == other.integer && fraction == other.fraction && above_min == other.above_min &&
         below_max == other.below_max && steps_same &&
         same(has_min, other.has_min, min, other.min) &&
         same(has_max, other.has_max, max, other.max);
}

const char* numberExpression(const NumberFacts& facts, Grammar* grammar, ExprId* expression) {
  if (!facts.integer && ((facts.above_min && facts.min.significantDigits() > kMostDigits) ||
                         (facts.below_max && facts.max.significantDigits() > kMostDigits))) {
    return "has more than 15 digits: write fewer";
  }
  NumberFacts bounded = facts;
  if (facts.integer && facts.n_steps == 0) {  // multiples have fewer digits anyway
    // Unless larger numbers are required.
    const Decimal least = decimalOf(-kLargestInteger);
    const Decimal most = decimalOf(kLargestInteger);
    if (!facts.has_max || compareDecimals(facts.max, least) > 0) {
      bounded.addMin(least, false);
    }
    if (!facts.has_min || compareDecimals(facts.min, most) < 0) {
      bounded.addMax(most, false);
    }
  }
  (void)grammar->work()->begin();
  Dfa dfa;
  const char* const error = NumberAutomaton(bounded, grammar->work()).build(&dfa);
  if (error != nullptr) {
    return error;
  }
  *expression = dfaExpression(dfa, DfaSpelling::kPlain, grammar);
  if (!facts.integer && !facts.fraction && !facts.isBounded()) {
    // [eE] [+-]? [0-9]{1,2}: Python writes 1e-07
    const CharRange e[] = {{'e', 'e'}, {'E', 'E'}};
    const CharRange sign[] = {{'+', '+'}, {'-', '-'}};
    const CharRange digit[] = {{'0', '9'}};
    const ExprId digits = grammar->repeat(grammar->chars(digit, 1), 1, 2);
    const ExprId exponent =
        grammar->sequence(grammar->chars(e, 2),
                          grammar->sequence(grammar->optional(grammar->chars(sign, 2)), digits));
    *expression = grammar->sequence(*expression, grammar->optional(exponent));
  }
  return nullptr;
}

}  // namespace oriel_internal
