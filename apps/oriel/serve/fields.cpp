#include "serve/api_error.h"

#include <cmath>
#include <random>
#include <utility>

namespace cli {

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    throw wrongField(path_.empty() ? "the body" : path_, "an object");
  }
}

std::string Fields::nameOf(const char* name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null() ? &*found : nullptr;
}

const Json& Fields::need(const char* name, const char* what) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    const std::string full = nameOf(name);
    throw ApiError{400, full + " is missing: give " + what, full, "missing_required_parameter", 0};
  }
  return *value;
}

std::optional<std::string> Fields::text(const char* name) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    throw wrongField(nameOf(name), "a text");
  }
  return value->get<std::string>();
}

std::optional<bool> Fields::boolean(const char* name) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    throw wrongField(nameOf(name), "true or false");
  }
  return value->get<bool>();
}

std::optional<double> Fields::number(const char* name, double least, double most) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most)) {  // also catches NaN
    throw wrongField(nameOf(name), formatted("a number from %.10g to %.10g", least, most));
  }
  return number;
}

std::optional<int64_t> wholeOf(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    return number <= INT64_MAX ? std::optional<int64_t>(static_cast<int64_t>(number))
                               : std::nullopt;
  }
  if (value.is_number_integer()) {
    return value.get<int64_t>();
  }
  const double number = value.is_number() ? value.get<double>() : 0.5;
  const bool exact = std::abs(number) < 9e15 && number == std::floor(number);
  return exact ? std::optional<int64_t>(static_cast<int64_t>(number)) : std::nullopt;
}

std::optional<int64_t> Fields::whole(const char* name, int64_t least, int64_t most) const {
  const Json* const value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::optional<int64_t> number = wholeOf(*value);
  if (!number || *number < least || *number > most) {
    throw wrongField(nameOf(name), "a whole number from " + std::to_string(least) + " to " +
                                       std::to_string(most));
  }
  return number;
}

std::string newId(const char* kind) {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id = kind;
  for (int i = 0; i < 24; ++i) {
    id += kLetters[random() % (sizeof(kLetters) - 1)];
  }
  return id;
}

}  // namespace cli
