#include "reply/json_input.h"

#include <algorithm>
#include <limits>

#include "failure.h"
#include "terminal/terminal.h"
#include "text_input.h"

namespace cli {
namespace {

constexpr uint64_t kMostBytes = 64 << 20;
/// Each key is compared with those before it.
constexpr size_t kMostKeys = 1024;

/// Reads without keeping anything, and ends by a Failure where a bound is passed. (The parser's own callbacks would
/// do for that, but they look through all of a list behind each object in it.)
class Bounds : public nlohmann::json_sax<Json> {
 public:
  Bounds(const std::string& what, size_t most_values) : what_(what), most_values_(most_values) {}

  bool null() override { return seeValue(); }
  bool boolean(bool) override { return seeValue(); }
  bool number_integer(int64_t) override { return seeValue(); }
  bool number_unsigned(uint64_t) override { return seeValue(); }
  bool number_float(double, const std::string&) override { return seeValue(); }
  bool string(std::string&) override { return seeValue(); }
  bool binary(Json::binary_t&) override { return seeValue(); }
  bool key(std::string& name) override {
    seeKey(name);
    return seeValue();
  }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool open() {
    if (keys_.size() == kMostJsonDepth) {
      fail(" is nested too deeply: at most " + std::to_string(kMostJsonDepth) + " levels are read");
    }
    keys_.emplace_back();
    return seeValue();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }
  bool seeValue() {
    if (++values_ > most_values_) {
      fail(" has more than " + std::to_string(most_values_) + " values: give it in parts");
    }
    return true;
  }
  void seeKey(const std::string& key) {
    std::vector<std::string>& keys = keys_.back();
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      fail(" names \"" + terminalSafe(key.substr(0, 60)) + "\" twice: keep one of them");
    }
    if (keys.size() == kMostKeys) {
      fail(" has an object with more than " + std::to_string(kMostKeys) + " names: check the file");
    }
    keys.push_back(key);
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Failure{kExitFailed, what_ + reason};
  }

  const std::string& what_;
  const size_t most_values_;
  std::vector<std::vector<std::string>> keys_;  ///< of each object that is open; none of arrays
  size_t values_ = 0;
};

/// A value that is not what it should be, for an error.
std::string shown(const Json& value) {
  if (value.is_structured()) {
    return value.is_array() ? "a list" : "an object";
  }
  const std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

bool isId(const Json& value) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  // As JSON compares them numbers above 2^63 would be negative.
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(kMost);
  }
  return value.is_number_integer() && value.get<int64_t>() >= -kMost - 1 &&
         value.get<int64_t>() <= kMost;
}

}  // namespace

Json parseJson(const std::string& text, const std::string& what, size_t most_values) {
  Bounds bounds(what, most_values);
  Json json;
  if (Json::sax_parse(text, &bounds)) {
    json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  } else {
    json = Json(Json::value_t::discarded);
  }
  if (json.is_discarded()) {
    throw Failure{kExitFailed, what + " is not JSON: check it"};
  }
  return json;
}

Json readJson(const std::string& path) {
  return parseJson(readAll(path, kMostBytes), inputName(path));
}

std::vector<int32_t> idsFromJson(const Json& json, const std::string& what) {
  const Json* list = &json;
  if (json.is_object() && json.contains("ids")) {
    list = &json["ids"];
  }
  if (!list->is_array()) {
    throw Failure{kExitFailed, what + R"( has no list of ids: write {"ids": [1, 2, 3]})"};
  }
  std::vector<int32_t> ids;
  ids.reserve(list->size());
  for (const Json& item : *list) {
    if (!isId(item)) {
      throw Failure{kExitFailed, what + " has an id that is not a token id (" + shown(item) +
                                     "): use whole numbers"};
    }
    ids.push_back(static_cast<int32_t>(item.get<int64_t>()));
  }
  return ids;
}

}  // namespace cli
