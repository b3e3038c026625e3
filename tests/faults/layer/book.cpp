#include "faults/layer/fault_layer.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace oriel_internal::faults {
namespace {

constexpr int32_t kDeviceLost = -4;  // VK_ERROR_DEVICE_LOST

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool exists(const std::string& path) { return std::ifstream(path).good(); }

std::vector<uint32_t> flagsOf(const std::string& list) {
  std::vector<uint32_t> flags;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    flags.push_back(static_cast<uint32_t>(std::strtoul(word.c_str(), nullptr, 16)));
  }
  return flags;
}

bool beginsWith(const std::string& text, const char* begin) { return text.rfind(begin, 0) == 0; }

}  // namespace

Book::Book() : when_(variable("ORIEL_FAULTS_WHEN")), report_(variable("ORIEL_FAULTS_REPORT")) {
  std::istringstream orders(variable("ORIEL_FAULTS"));
  for (std::string order; orders >> order;) {
    read(order);
  }
}

// The syntax is in fault_layer.h. Unreadable orders are reported: a test without orders would pass.
void Book::read(const std::string& order) {
  const size_t at = order.find('@');
  const size_t is = order.find('=');
  if (is == std::string::npos) {
    std::fprintf(stderr, "fault layer: \"%s\" is no order\n", order.c_str());
  } else if (beginsWith(order, "memory=")) {
    most_bytes_ = std::strtoull(order.c_str() + is + 1, nullptr, 10);
  } else if (beginsWith(order, "dirt=")) {
    dirt_ = static_cast<int>(std::strtol(order.c_str() + is + 1, nullptr, 10));
  } else if (beginsWith(order, "fences=")) {
    delay_ms_ = static_cast<uint32_t>(std::strtoul(order.c_str() + is + 1, nullptr, 10));
  } else if (beginsWith(order, "types=")) {
    types_ = flagsOf(order.substr(is + 1));
  } else if (beginsWith(order, "families=")) {
    families_ = flagsOf(order.substr(is + 1));
  } else if (beginsWith(order, "padding=")) {
    padding_ = std::strtoull(order.c_str() + is + 1, nullptr, 10);
  } else if (beginsWith(order, "allocation=")) {
    most_of_allocation_ = std::strtoull(order.c_str() + is + 1, nullptr, 10);
  } else if (beginsWith(order, "budget=")) {
    budget_ = std::strtoull(order.c_str() + is + 1, nullptr, 10);
  } else if (beginsWith(order, "ticks=")) {
    ticks_ = static_cast<int>(std::strtol(order.c_str() + is + 1, nullptr, 10));
  } else if (beginsWith(order, "kind=")) {
    kind_ = static_cast<int>(std::strtol(order.c_str() + is + 1, nullptr, 10));
  } else if (beginsWith(order, "subgroup=")) {
    subgroup_ = std::strtoll(order.c_str() + is + 1, nullptr, 10);
  } else if (at < is) {
    fail(order.substr(0, at), std::strtoull(order.c_str() + at + 1, nullptr, 10),
         static_cast<int32_t>(std::strtol(order.c_str() + is + 1, nullptr, 10)),
         order[is - 1] == '+');
  } else {
    std::fprintf(stderr, "fault layer: \"%s\" is no order\n", order.c_str());
  }
}

void Book::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_.clear();
  orders_.clear();
  failed_ = 0;
  most_bytes_ = 0;
  delay_ms_ = 0;
}

void Book::fail(const std::string& function, uint64_t nth, int32_t result, bool from_then_on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  orders_[function] = {nth + calls_[function], result, from_then_on};
}

int32_t Book::decide(const char* function, bool device_is_lost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!when_.empty() && !exists(when_)) {
    return device_is_lost ? kDeviceLost : 0;
  }
  const uint64_t nth = ++calls_[function];
  const auto order = orders_.find(function);
  const bool ordered =
      order != orders_.end() &&
      (nth == order->second.nth || (order->second.from_then_on && nth > order->second.nth));
  if (!ordered && !device_is_lost) {
    return 0;
  }
  ++failed_;
  return device_is_lost ? kDeviceLost : order->second.result;
}

uint64_t Book::calls(const char* function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

uint64_t Book::failed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failed_;
}

void Book::made(const char* type, uint64_t handle, uint64_t owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  objects_[{type, handle}] = owner;
}

// Destroying a null handle is allowed.
void Book::destroyed(const char* type, uint64_t handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (handle != 0 && objects_.erase({type, handle}) == 0) {
    complain(std::string(type) + " destroyed that is not there");
  }
}

void Book::ownerDestroyed(uint64_t owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, uint64_t> left;
  for (auto object = objects_.begin(); object != objects_.end();) {
    const bool its = object->second == owner;
    left[object->first.first] += its ? 1 : 0;
    object = its ? objects_.erase(object) : std::next(object);
  }
  for (const auto& [type, count] : left) {
    if (count != 0) {
      complain(type + " left: " + std::to_string(count));
    }
  }
}

uint64_t Book::objects() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return objects_.size();
}

const char* Book::complaints() {
  const std::lock_guard<std::mutex> lock(mutex_);
  told_ = complaints_;
  complaints_.clear();
  return told_.c_str();
}

void Book::complain(const std::string& line) {
  complaints_ += line + "\n";
  if (!report_.empty()) {
    std::ofstream(report_, std::ios::app) << line << "\n";
  }
}

}  // namespace oriel_internal::faults
