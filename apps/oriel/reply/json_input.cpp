#include "reply/json_input.h"

#include <oriel/tools.h>

#include <charconv>
#include <exception>
#include <limits>
#include <utility>

#include "output.h"

namespace cli {
namespace {

constexpr uint64_t kMostBytes = 64 << 20;

/// Builds a value from its items. Members are appended without a search: the reader has rejected duplicate names.
class Builder {
 public:
  Builder(const std::string& what, size_t most_values) : what_(what), most_values_(most_values) {}

  static int onItem(const oriel_json_item* item, void* user) {
    auto* const self = static_cast<Builder*>(user);
    try {
      self->add(*item);
      return 0;
    } catch (...) {  // exceptions must not pass through the library
      self->thrown_ = std::current_exception();
      return 1;
    }
  }
  Json take() {
    if (thrown_ != nullptr) {
      std::rethrow_exception(thrown_);
    }
    return std::move(root_);
  }

 private:
  void add(const oriel_json_item& item) {
    if (item.kind == ORIEL_JSON_END) {
      open_.pop_back();
      return;
    }
    const bool is_open = item.kind == ORIEL_JSON_LIST || item.kind == ORIEL_JSON_OBJECT;
    values_ += item.key != nullptr ? 2 : 1;
    if (values_ + (is_open ? item.count : 0) > most_values_) {
      throw Failure{kExitFailed, what_ + " has more than " + std::to_string(most_values_) +
                                     " values: give it in parts"};
    }
    Json* const place = placeFor(item);
    *place = valueOf(item);
    if (is_open) {
      open_.push_back(place);
    }
  }

  Json* placeFor(const oriel_json_item& item) {
    if (open_.empty()) {
      return &root_;
    }
    if (item.key == nullptr) {
      Json::array_t& list = open_.back()->get_ref<Json::array_t&>();
      list.emplace_back();
      return &list.back();
    }
    // The vector's own emplace_back; the object's would compare the name with all others.
    Json::object_t::Container& members = open_.back()->get_ref<Json::object_t&>();
    members.emplace_back(std::string(item.key, item.key_bytes), Json());
    return &members.back().second;
  }

  Json valueOf(const oriel_json_item& item) const {
    switch (item.kind) {
      case ORIEL_JSON_BOOL:
        return item.count != 0;
      case ORIEL_JSON_NUMBER:
        return numberOf(item.text, item.text + item.text_bytes);
      case ORIEL_JSON_STRING:
        return std::string(item.text, item.text_bytes);
      case ORIEL_JSON_LIST: {
        Json list = Json::array();
        list.get_ref<Json::array_t&>().reserve(item.count);
        return list;
      }
      case ORIEL_JSON_OBJECT: {
        Json object = Json::object();
        object.get_ref<Json::object_t&>().reserve(item.count);
        return object;
      }
      default:
        return {};
    }
  }

  Json numberOf(const char* begin, const char* end) const {
    int64_t whole = 0;
    if (const auto read = std::from_chars(begin, end, whole);
        read.ptr == end && read.ec == std::errc()) {
      return whole < 0 ? Json(whole) : Json(static_cast<uint64_t>(whole));
    }
    Json number = tryJson(std::string(begin, end));
    if (number.is_discarded()) {
      throw Failure{kExitFailed, what_ + " has a number that is too large: correct it"};
    }
    return number;
  }

  const std::string& what_;
  const size_t most_values_;
  Json root_;
  std::vector<Json*> open_;  ///< lists and objects; reserved, so elements do not move
  size_t values_ = 0;
  std::exception_ptr thrown_;
};

/// An unexpected value, for an error.
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
  // nlohmann's comparison would treat numbers above 2^63 as negative.
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(kMost);
  }
  return value.is_number_integer() && value.get<int64_t>() >= -kMost - 1 &&
         value.get<int64_t>() <= kMost;
}

}  // namespace

Json parseJson(const std::string& text, const std::string& what, size_t most_values) {
  char line[512] = "";
  oriel_options options = ORIEL_OPTIONS_INIT;
  options.error_line = line;
  options.error_line_bytes = sizeof(line);
  Builder builder(what, most_values);
  const oriel_status status =
      oriel_json_read(text.data(), text.size(), what.c_str(), &options, Builder::onItem, &builder);
  if (status != ORIEL_OK && status != ORIEL_ERROR_CANCELLED) {
    throw Failure{kExitFailed, line};
  }
  return builder.take();
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
