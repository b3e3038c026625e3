#include "budget/loss.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/byte_order_mark.h"

namespace oriel_internal {
namespace {

constexpr double kVersion = 1;
/// Nesting depth of skipped values. The known format has three levels.
constexpr int kMaxDepth = 32;
/// Longest key or text that is compared. All known ones are shorter.
constexpr size_t kMaxText = 32;

struct Text {
  char chars[kMaxText + 1] = "";
  bool is(const char* other) const { return std::strcmp(chars, other) == 0; }
};

/// A JSON parser (RFC 8259) that reads front to back. After an error every call fails.
class JsonText {
 public:
  explicit JsonText(const TextSource& source) : source_(source) {
    const char* mark = kByteOrderMark;
    for (; *mark != '\0' && peek() == static_cast<unsigned char>(*mark); ++mark) {
      ++at_;
    }
    failed_ = mark != kByteOrderMark && *mark != '\0';
  }

  bool failed() const { return failed_; }
  bool fail() {
    failed_ = true;
    return false;
  }

  /// The next byte after white space, not consumed; -1 at the end.
  int next() {
    int byte = peek();
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
      ++at_;
      byte = peek();
    }
    return byte;
  }

  /// Consumes this byte after white space, or fails.
  bool take(char byte) {
    if (next() != byte) {
      return fail();
    }
    ++at_;
    return true;
  }

  /// True if another entry follows in an open list or object. Consumes the closing bracket at the end.
  bool another(char close, bool* first) {
    if (failed_) {
      return false;
    }
    if (next() == close) {
      ++at_;
      return false;
    }
    const bool comma = !*first;
    *first = false;
    return !comma || (take(',') && (next() != close || fail()));
  }

  /// A text. Texts that are too long or have escapes become empty; no known text has either.
  bool text(Text* out) {
    *out = Text();
    if (!take('"')) {
      return false;
    }
    size_t length = 0;
    bool known = true;
    for (int byte = peek(); byte != '"'; byte = peek()) {
      if (byte < ' ') {
        return fail();  // the end, too
      }
      ++at_;
      if (byte == '\\') {
        known = false;
        if (peek() < ' ') {
          return fail();
        }
        ++at_;  // the four characters after \u are letters and digits, so they pass
      } else if (length < kMaxText) {
        out->chars[length] = static_cast<char>(byte);
      }
      ++length;
    }
    ++at_;
    if (!known || length > kMaxText) {
      *out = Text();
    }
    return true;
  }

  /// Gives the nearest double if the digits are a number below 2^53 and the exponent is small, as in all numbers above
  /// 1e-8 with 15 digits. Other numbers are correct to a few units in the last place.
  bool number(double* out) {
    const bool negative = next() == '-';
    at_ += negative ? 1 : 0;
    uint64_t digits = 0;
    int exponent = 0;
    const bool leading_zero = peek() == '0';
    int whole = 0;
    for (; isDigit(peek()); ++whole) {
      exponent += addDigit(&digits) ? 0 : 1;
    }
    bool sound = whole == 1 || (whole > 1 && !leading_zero);
    if (peek() == '.') {
      ++at_;
      sound = sound && isDigit(peek());
      while (isDigit(peek())) {
        exponent -= addDigit(&digits) ? 1 : 0;
      }
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      const bool below = peek() == '-';
      at_ += below || peek() == '+' ? 1 : 0;
      sound = sound && isDigit(peek());
      int written = 0;
      for (; isDigit(peek()); ++at_) {
        written = std::min(written * 10 + (peek() - '0'), 100000);
      }
      exponent += below ? -written : written;
    }
    if (failed_ || !sound) {
      return fail();
    }
    const double magnitude = scaled(static_cast<double>(digits), exponent);
    *out = negative ? -magnitude : magnitude;
    return true;
  }

  /// Skips a value of any kind.
  bool skip() {
    char open[kMaxDepth];  // closing brackets still expected
    int depth = 0;
    do {
      const int byte = next();
      if (byte == '{' || byte == '[') {
        ++at_;
        const char close = byte == '{' ? '}' : ']';
        if (next() == close) {
          ++at_;
        } else if (depth == kMaxDepth) {
          return fail();
        } else {
          open[depth++] = close;
          if (close == '}' && !key()) {
            return false;
          }
          continue;
        }
      } else if (!scalar(byte)) {
        return false;
      }
      // After a value: close finished lists and objects, then look for another value.
      while (depth > 0 && next() == open[depth - 1]) {
        ++at_;
        --depth;
      }
      if (depth > 0 && (!take(',') || (open[depth - 1] == '}' && !key()))) {
        return false;
      }
    } while (depth > 0);
    return true;
  }

  /// Consumes "null", or nothing.
  bool isNull() { return next() == 'n' && word("null"); }

 private:
  static bool isDigit(int byte) { return byte >= '0' && byte <= '9'; }

  int peek() {
    if (failed_) {
      return -1;
    }
    if (at_ == end_) {
      at_ = 0;
      end_ = total_ < kMaxCalibrationBytes ? source_.read(source_.context, buffer_, sizeof(buffer_))
                                           : 0;
      total_ += end_;
      if (end_ == 0) {
        return -1;
      }
    }
    return static_cast<unsigned char>(buffer_[at_]);
  }

  /// False: the digit is beyond the precision.
  bool addDigit(uint64_t* digits) {
    const auto digit = static_cast<uint64_t>(peek() - '0');
    ++at_;
    if (*digits >= 1000000000000000000u) {
      return false;
    }
    *digits = *digits * 10 + digit;
    return true;
  }

  static double scaled(double value, int exponent) {
    // 10^22 is the largest power of ten that a double represents exactly
    constexpr int kExactPower = 22;
    double power = 1;
    const int size = std::min(std::abs(exponent), 400);
    for (int left = size; left > 0 && value != 0;) {
      const int step = std::min(left, kExactPower);
      power = 1;
      for (int i = 0; i < step; ++i) {
        power *= 10;
      }
      value = exponent < 0 ? value / power : value * power;
      left -= step;
    }
    return value;
  }

  bool word(const char* letters) {
    for (; *letters != '\0'; ++letters, ++at_) {
      if (peek() != *letters) {
        return fail();
      }
    }
    return true;
  }

  bool key() {
    Text ignored;
    return text(&ignored) && take(':');
  }

  bool scalar(int byte) {
    Text text_ignored;
    double number_ignored;
    return byte == '"'   ? text(&text_ignored)
           : byte == 't' ? word("true")
           : byte == 'f' ? word("false")
           : byte == 'n' ? word("null")
                         : number(&number_ignored);
  }

  TextSource source_;
  char buffer_[1024];
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t total_ = 0;
  bool failed_ = false;
};

struct Constant {
  const char* name;
  double Calibration::*value;
};
constexpr Constant kConstants[] = {
    {"forget_scale", &Calibration::forget_scale}, {"forget_power", &Calibration::forget_power},
    {"keys_int8", &Calibration::keys_int8},       {"keys_int4", &Calibration::keys_int4},
    {"values_int8", &Calibration::values_int8},   {"values_int4", &Calibration::values_int4},
    {"kl_limit", &Calibration::kl_limit},         {"state_f16", &Calibration::state_f16},
    {"state_int8", &Calibration::state_int8},
};

struct LayerConstant {
  const char* name;
  double LayerCalibration::*value;
};
constexpr LayerConstant kLayerConstants[] = {
    {"keys_int8", &LayerCalibration::keys_int8},
    {"keys_int4", &LayerCalibration::keys_int4},
    {"values_int8", &LayerCalibration::values_int8},
    {"values_int4", &LayerCalibration::values_int4},
};

class Reader {
 public:
  Reader(const TextSource& text, CalibrationFile* file) : json_(text), file_(file) {}

  CalibrationFault read() {
    Text name;
    bool first = true;
    json_.take('{');
    while (json_.another('}', &first) && json_.text(&name) && json_.take(':')) {
      if (name.is("version")) {
        readVersion();
      } else if (name.is("model")) {
        has_model_ = readModel();
      } else if (name.is("constants")) {
        has_constants_ = readConstants();
      } else if (name.is("layers")) {
        readLayers();
      } else if (name.is("windows")) {
        readProfiles();
      } else {
        json_.skip();
      }
      if (fault_ != CalibrationFault::kNone) {
        return fault_;
      }
    }
    const bool whole = !json_.failed() && json_.next() == -1;
    if (!whole || !has_version_ || !has_model_ || !has_constants_) {
      return CalibrationFault::kNotOne;
    }
    if (!sameLayers()) {
      return CalibrationFault::kConstant;
    }
    file_->constants.profile_layers = shares_[0];
    file_->constants.profiles = file_->constants.profile_count != 0 ? file_->profiles : nullptr;
    file_->constants.layers = file_->constants.layer_count != 0 ? file_->layers : nullptr;
    return CalibrationFault::kNone;
  }

 private:
  bool refuse(CalibrationFault fault) {
    // the text ends here, or is not JSON
    fault_ = json_.next() == -1 ? CalibrationFault::kNotOne : fault;
    return false;
  }

  void readVersion() {
    double version = 0;
    has_version_ = json_.next() != '"' && json_.number(&version);
    if (has_version_ && version != kVersion) {
      refuse(CalibrationFault::kVersion);
    }
  }

  // Null: the model could not be read when the file was written.
  bool readModel() {
    if (json_.isNull()) {
      return true;
    }
    Text name;
    Text hash;
    double bytes = 0;
    bool first = true;
    json_.take('{');
    while (json_.another('}', &first) && json_.text(&name) && json_.take(':')) {
      if (name.is("file_bytes")) {
        json_.number(&bytes);
      } else if (name.is("hash")) {
        json_.text(&hash);
      } else {
        json_.skip();
      }
    }
    if (json_.failed()) {
      return false;
    }
    file_->model_bytes = bytes >= 0 && bytes < 1e18 ? static_cast<uint64_t>(bytes) : 0;
    file_->model_hash = 0;
    for (const char* c = hash.chars; *c != '\0'; ++c) {
      const int digit = *c >= '0' && *c <= '9'   ? *c - '0'
                        : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10
                                                 : -1;
      if (digit < 0 || c - hash.chars == 16) {
        file_->model_bytes = 0;  // matches no runnable file
        break;
      }
      file_->model_hash = file_->model_hash << 4 | static_cast<uint64_t>(digit);
    }
    return true;
  }

  /// A number that a measurement can give.
  bool measurement(double* value) {
    const int byte = json_.next();
    if (byte != '-' && (byte < '0' || byte > '9')) {
      return refuse(CalibrationFault::kConstant);
    }
    if (!json_.number(value)) {
      return false;
    }
    return isMeasurement(*value) || refuse(CalibrationFault::kConstant);
  }

  /// Null or missing: not measured.
  bool readConstants() {
    if (json_.next() != '{') {
      return refuse(CalibrationFault::kConstant);
    }
    Text name;
    bool first = true;
    json_.take('{');
    while (json_.another('}', &first) && json_.text(&name) && json_.take(':')) {
      const Constant* constant = std::find_if(std::begin(kConstants), std::end(kConstants),
                                              [&](const Constant& c) { return name.is(c.name); });
      if (constant == std::end(kConstants)) {
        json_.skip();
      } else if (json_.isNull()) {
        file_->constants.*constant->value = 0;
      } else if (!measurement(&(file_->constants.*constant->value))) {
        return false;
      }
    }
    return !json_.failed();
  }

  /// Null or not a list: not measured.
  void readLayers() {
    file_->constants.layer_count = 0;
    if (json_.isNull()) {
      return;
    }
    bool first = true;
    if (json_.next() != '[') {
      refuse(CalibrationFault::kConstant);
      return;
    }
    json_.take('[');
    while (json_.another(']', &first)) {
      uint32_t& count = file_->constants.layer_count;
      if (count == kMaxLayers || !readLayer(&file_->layers[count])) {
        refuse(CalibrationFault::kConstant);
        return;
      }
      ++count;
    }
  }

  /// Null: not measured.
  void readProfiles() {
    file_->constants.profile_count = 0;
    if (json_.isNull()) {
      return;
    }
    bool first = true;
    if (json_.next() != '[') {
      refuse(CalibrationFault::kConstant);
      return;
    }
    json_.take('[');
    while (json_.another(']', &first)) {
      uint32_t& count = file_->constants.profile_count;
      if (count == kMaxWindowProfiles || !readProfile(&file_->profiles[count], &shares_[count])) {
        refuse(CalibrationFault::kConstant);
        return;
      }
      ++count;
    }
  }

  bool readProfile(WindowProfile* profile, uint32_t* n_shares) {
    if (json_.next() != '{') {
      return false;
    }
    *profile = {};
    *n_shares = 0;
    Text name;
    double window = 0;
    bool has_loss = false;
    bool first = true;
    json_.take('{');
    while (json_.another('}', &first) && json_.text(&name) && json_.take(':')) {
      if (name.is("window_tokens")) {
        if (!measurement(&window)) {
          return false;
        }
      } else if (name.is("loss_nats")) {
        has_loss = json_.number(&profile->loss) && isMeasurement(std::fabs(profile->loss));
      } else if (name.is("shares")) {
        if (!readShares(profile->parts, n_shares)) {
          return false;
        }
      } else {
        json_.skip();
      }
    }
    profile->window = window >= 1 && window <= kMaxWindow ? static_cast<uint32_t>(window) : 0;
    return !json_.failed() && has_loss && profile->window != 0 && *n_shares != 0;
  }

  bool readShares(uint8_t* parts, uint32_t* count) {
    bool first = true;
    *count = 0;
    if (json_.next() != '[') {
      return false;
    }
    json_.take('[');
    while (json_.another(']', &first)) {
      double part = 0;
      if (*count == kMaxLayers || !measurement(&part) || part >= kWindowParts) {
        return false;
      }
      parts[(*count)++] = static_cast<uint8_t>(part);
    }
    return !json_.failed();
  }

  /// All profiles and the list of layers must have the same number of layers.
  bool sameLayers() const {
    const Calibration& constants = file_->constants;
    return std::all_of(shares_, shares_ + constants.profile_count, [&](uint32_t count) {
      return count == shares_[0] && (constants.layer_count == 0 || count == constants.layer_count);
    });
  }

  bool readLayer(LayerCalibration* layer) {
    if (json_.next() != '{') {
      return false;
    }
    *layer = {};
    Text name;
    uint32_t found = 0;
    bool first = true;
    json_.take('{');
    while (json_.another('}', &first) && json_.text(&name) && json_.take(':')) {
      uint32_t i = 0;
      while (i < std::size(kLayerConstants) && !name.is(kLayerConstants[i].name)) {
        ++i;
      }
      if (i == std::size(kLayerConstants)) {
        json_.skip();
      } else if (!measurement(&(layer->*kLayerConstants[i].value))) {
        return false;
      } else {
        found |= 1u << i;
      }
    }
    return !json_.failed() && found == (1u << std::size(kLayerConstants)) - 1;
  }

  JsonText json_;
  CalibrationFile* file_;
  CalibrationFault fault_ = CalibrationFault::kNone;
  uint32_t shares_[kMaxWindowProfiles] = {};  ///< layers in each profile
  bool has_version_ = false;
  bool has_model_ = false;
  bool has_constants_ = false;
};

}  // namespace

CalibrationFault readCalibrationFile(const TextSource& text, CalibrationFile* file) {
  file->model_bytes = 0;
  file->model_hash = 0;
  file->constants = {};
  return Reader(text, file).read();
}

}  // namespace oriel_internal
