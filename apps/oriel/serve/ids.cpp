#include "serve/ids.h"

#include <random>

namespace cli {

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
