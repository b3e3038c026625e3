// Almost valid model files: like those from a damaged disk, a faulty converter or an attacker. Tests only.
#pragma once

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/allocators.h"
#include "support/api.h"
#include "support/awkward.h"
#include "support/gguf_writer.h"

namespace oriel_internal::test {

/// A valid file taken apart.
inline GgufWriter takeApart(const std::vector<uint8_t>& file) {
  size_t at = 4;
  const auto number = [&](size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, file.data() + at, bytes);
    at += bytes;
    return value;
  };
  const auto text = [&] {
    const size_t bytes = number(8);
    at += bytes;
    return std::string(reinterpret_cast<const char*>(file.data()) + at - bytes, bytes);
  };
  const auto skip = [&](uint64_t type, uint64_t count) {
    constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    for (uint64_t i = 0; type == 8 && i < count; ++i) {
      text();
    }
    at += kBytes[type] * count;
  };
  GgufWriter out;
  out.version = static_cast<uint32_t>(number(4));
  const uint64_t n_tensors = number(8);
  const uint64_t n_keys = number(8);
  for (uint64_t i = 0; i < n_keys; ++i) {
    const std::string name = text();
    const uint64_t type = number(4);
    const size_t begin = at;
    if (type == 9) {
      const uint64_t element = number(4);
      skip(element, number(8));
    } else {
      skip(type, 1);
    }
    out.addRaw(name, static_cast<uint32_t>(type),
               {file.begin() + static_cast<std::ptrdiff_t>(begin),
                file.begin() + static_cast<std::ptrdiff_t>(at)});
  }
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < n_tensors; ++i) {
    const std::string name = text();
    std::vector<uint64_t> dims(number(4));
    for (uint64_t& dim : dims) {
      dim = number(8);
    }
    const uint64_t type = number(4);
    out.addTensor(name, static_cast<uint32_t>(type), dims, {});
    offsets.push_back(number(8));
  }
  const size_t data = (at + 31) / 32 * 32;
  for (size_t i = 0; i < offsets.size(); ++i) {
    uint64_t end = file.size() - data;  // up to the next tensor
    for (const uint64_t other : offsets) {
      end = other > offsets[i] ? std::min(end, other) : end;
    }
    out.tensors()[i].data.assign(file.begin() + static_cast<std::ptrdiff_t>(data + offsets[i]),
                                 file.begin() + static_cast<std::ptrdiff_t>(data + end));
  }
  return out;
}

/// Makes the same mutant from the same valid file and number.
class ModelMutator {
 public:
  ModelMutator(const GgufWriter& sound, uint64_t number) : file_(sound), random_(number) {}

  /// `what` describes the mutation.
  std::vector<uint8_t> make(std::string* what) {
    what_ = what;
    for (uint64_t n = 1 + below(3) * below(2); n != 0; --n) {
      const std::function<void()> kinds[] = {[&] { changeNumber(); }, [&] { changeNumber(); },
                                             [&] { changeText(); },   [&] { changeList(); },
                                             [&] { changeList(); },   [&] { changeKeys(); },
                                             [&] { changeTensor(); }, [&] { changeTensor(); },
                                             [&] { changeData(); },   [&] { changeKeyBytes(); }};
      kinds[below(std::size(kinds))]();
    }
    std::vector<uint8_t> bytes = file_.build();
    if (below(3) == 0) {
      damage(&bytes);
    }
    return bytes;
  }

 private:
  using Key = GgufWriter::Key;
  static constexpr uint32_t kText = static_cast<uint32_t>(ValueType::kString);
  static constexpr uint32_t kList = static_cast<uint32_t>(ValueType::kArray);

  uint64_t below(uint64_t end) { return end == 0 ? 0 : random_() % end; }
  template <typename T>
  T& anyOf(std::vector<T>& items) {
    return items[below(items.size())];
  }
  template <typename... Parts>
  void say(const Parts&... parts) {
    ((*what_ += parts), ...);
    *what_ += "; ";
  }

  uint64_t awkward() { return awkwardNumber(random_); }
  std::string awkwardText() {
    const std::string texts[] = {"",
                                 " ",
                                 std::string(1, '\0'),
                                 "\xff\xfe",
                                 "\xc3",
                                 "\xf0\x9f\x98",
                                 "<|im_start|>",
                                 "<|im_end|>",
                                 "<0x41>",
                                 "<0xZZ>",
                                 "</s>",
                                 std::string(300, 'a'),
                                 std::string(70000, ' '),
                                 "\xe2\x96\x81",
                                 "\xc4\xa0",
                                 "a b",
                                 "%s%n",
                                 "llama",
                                 "gemma3",
                                 "qwen3",
                                 "phi3",
                                 "granite",
                                 "minicpm",
                                 "olmo2",
                                 "lfm2",
                                 "gpt2",
                                 "spm",
                                 "{%",
                                 "{{",
                                 "default",
                                 std::string(5000, '<')};
    return texts[below(std::size(texts))];
  }

  void changeNumber() {
    std::vector<Key*> numbers;
    for (Key& key : file_.keys()) {
      if (key.type != kText && key.type != kList) {
        numbers.push_back(&key);
      }
    }
    if (numbers.empty()) {
      return;
    }
    Key& key = *anyOf(numbers);
    say("number ", key.name);
    if (key.type == static_cast<uint32_t>(ValueType::kFloat32)) {
      file_.addFloat32(key.name, static_cast<float>(std::clamp(awkwardReal(random_), -3e38, 3e38)));
      if (below(4) == 0) {
        file_.addFloat32(key.name, std::numeric_limits<float>::quiet_NaN());
      }
    } else if (below(4) == 0) {
      file_.addUint64(key.name, awkward());
    } else {
      const uint64_t value = awkward();
      std::memcpy(key.value.data(), &value, std::min<size_t>(key.value.size(), sizeof(value)));
    }
  }

  void changeText() {
    std::vector<Key*> texts;
    for (Key& key : file_.keys()) {
      if (key.type == kText && key.value.size() >= 8) {
        texts.push_back(&key);
      }
    }
    if (texts.empty()) {
      return;
    }
    Key& key = *anyOf(texts);
    say("text ", key.name);
    std::string text(key.value.begin() + 8, key.value.end());
    const size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text = awkwardText();
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, awkwardText());
        break;
      case 3:
        text = text.substr(at) + text.substr(0, at);
        break;
      default:
        for (uint64_t n = 1 + below(8); n != 0 && !text.empty(); --n) {
          text[below(text.size())] = static_cast<char>(random_());
        }
    }
    file_.addString(key.name, text);
  }

  std::vector<std::string> stringsOf(const Key& key) const {
    std::vector<std::string> strings;
    for (size_t at = 12; at + 8 <= key.value.size();) {
      uint64_t bytes = 0;
      std::memcpy(&bytes, key.value.data() + at, 8);
      bytes = std::min<uint64_t>(bytes, key.value.size() - at - 8);
      strings.emplace_back(reinterpret_cast<const char*>(key.value.data()) + at + 8, bytes);
      at += 8 + bytes;
    }
    return strings;
  }

  void changeList() {
    std::vector<Key*> lists;
    for (Key& key : file_.keys()) {
      if (key.type == kList && key.value.size() >= 12) {
        lists.push_back(&key);
      }
    }
    if (lists.empty()) {
      return;
    }
    Key& key = *anyOf(lists);
    say("list ", key.name);
    uint32_t element = 0;
    std::memcpy(&element, key.value.data(), sizeof(element));
    const uint64_t kind = below(8);
    if (kind == 0) {  // a wrong count
      const uint64_t count = awkward();
      std::memcpy(key.value.data() + 4, &count, sizeof(count));
    } else if (kind == 1) {  // another type of elements
      element = static_cast<uint32_t>(below(15));
      std::memcpy(key.value.data(), &element, sizeof(element));
    } else if (kind == 2) {  // the values of another list
      key.value = anyOf(lists)->value;
    } else if (element == kText) {
      changeStrings(key, kind);
    } else if (key.value.size() > 12) {
      for (uint64_t n = 1 + below(40); n != 0; --n) {
        const size_t at = 12 + below(key.value.size() - 12);
        key.value[at] = below(2) == 0 ? uint8_t{0xff} : static_cast<uint8_t>(below(16));
      }
    }
  }

  void changeStrings(Key& key, uint64_t kind) {
    std::vector<std::string> strings = stringsOf(key);
    if (strings.empty()) {
      return;
    }
    if (kind == 3) {  // the bytes of a length, anywhere
      for (uint64_t n = 1 + below(3); n != 0; --n) {
        size_t at = 12;
        for (uint64_t i = below(strings.size()); i != 0; --i) {
          at += 8 + strings[i - 1].size();
        }
        const uint64_t length = awkward();
        std::memcpy(key.value.data() + std::min(at, key.value.size() - 8), &length, 8);
      }
      return;
    }
    for (uint64_t n = 1 + below(kind == 4 ? strings.size() : 20); n != 0; --n) {
      std::string& text = anyOf(strings);
      switch (kind) {
        case 4:
          text = awkwardText().substr(0, 300);
          break;
        case 5:
          text = anyOf(strings);
          break;
        case 6:
          std::swap(text, anyOf(strings));
          break;
        default:
          text += anyOf(strings);
      }
    }
    file_.addStrings(key.name, strings);
  }

  void changeKeys() {
    std::vector<Key>& keys = file_.keys();
    if (keys.empty()) {
      return;
    }
    const size_t at = below(keys.size());
    say("key ", keys[at].name);
    switch (below(6)) {
      case 0:
        keys.push_back(keys[at]);
        break;
      case 1:
        keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        keys[at].name = awkwardText();
        break;
      case 3:
        std::swap(keys[at].name, anyOf(keys).name);
        break;
      case 4:
        keys[at].type = static_cast<uint32_t>(below(2) == 0 ? below(15) : awkward());
        break;
      default:
        file_.addNumber(below(2) == 0 ? "general.alignment" : keys[at].name, ValueType::kUint32,
                        static_cast<uint32_t>(awkward()));
    }
  }

  void changeTensor() {
    std::vector<GgufWriter::Tensor>& tensors = file_.tensors();
    if (tensors.empty()) {
      return;
    }
    GgufWriter::Tensor& tensor = anyOf(tensors);
    say("tensor ", tensor.name);
    switch (below(10)) {
      case 0:
        tensor.type = static_cast<uint32_t>(below(2) == 0 ? below(40) : awkward());
        break;
      case 1:
        anyOf(tensor.dims) = awkward();
        break;
      case 2:
        tensor.dims.push_back(below(3));
        break;
      case 3:
        std::reverse(tensor.dims.begin(), tensor.dims.end());
        break;
      case 4:
        file_.setTensorOffset(tensor.name, below(2) == 0 ? awkward() : below(1 << 20) / 32 * 32);
        break;
      case 5:
        std::swap(tensor.name, anyOf(tensors).name);
        break;
      case 6:
        tensor.name = below(2) == 0 ? awkwardText() : anyOf(tensors).name;
        break;
      case 7:
        tensor.data.resize(below(tensor.data.size() + 1));
        break;
      case 8:
        std::swap(tensor, anyOf(tensors));
        break;
      default: {
        const GgufWriter::Tensor copy = tensor;
        tensors.push_back(copy);
      }
    }
  }

  /// Implausible weights in a valid file.
  void changeData() {
    std::vector<GgufWriter::Tensor>& tensors = file_.tensors();
    if (tensors.empty()) {
      return;
    }
    GgufWriter::Tensor& tensor = anyOf(tensors);
    say("data of ", tensor.name);
    const uint64_t kind = below(4);
    const uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x0001, 0xffff};
    const uint16_t half = halves[below(std::size(halves))];
    for (size_t at = 0; at + 1 < tensor.data.size(); at += 2) {
      if (kind == 0 || (kind == 1 && below(64) == 0)) {
        std::memcpy(tensor.data.data() + at, &half, 2);
      } else if (kind == 2) {
        const uint16_t any = static_cast<uint16_t>(random_());
        std::memcpy(tensor.data.data() + at, &any, 2);
      }
    }
    if (kind == 3) {
      std::fill(tensor.data.begin(), tensor.data.end(), uint8_t{0});
    }
  }

  void changeKeyBytes() {
    if (file_.keys().empty()) {
      return;
    }
    Key& key = anyOf(file_.keys());
    say("bytes of ", key.name);
    for (uint64_t n = 1 + below(6); n != 0 && !key.value.empty(); --n) {
      anyOf(key.value) ^= static_cast<uint8_t>(1u << below(8));
    }
  }

  /// Bytes anywhere in the file, mostly in its header.
  void damage(std::vector<uint8_t>* bytes) {
    const size_t head = std::min<size_t>(bytes->size(), 24 + below(30000));
    switch (below(6)) {
      case 0:
        bytes->resize(below(bytes->size() + 1));
        say("cut off");
        break;
      case 1:
        bytes->resize(below(head + 1));
        say("cut off in the header");
        break;
      case 2: {
        const uint64_t value = awkward();
        std::memcpy(bytes->data() + 8 * (1 + below(2)), &value, 8);  // a count
        say("count");
        break;
      }
      case 3: {
        const size_t at = below(head);
        bytes->erase(bytes->begin() + static_cast<std::ptrdiff_t>(at),
                     bytes->begin() + static_cast<std::ptrdiff_t>(
                                          std::min<uint64_t>(bytes->size(), at + 1 + below(16))));
        say("bytes lost");
        break;
      }
      case 4: {
        const uint64_t value = awkward();
        const size_t at = below(head);
        std::memcpy(bytes->data() + at, &value, std::min<size_t>(8, bytes->size() - at));
        say("a word");
        break;
      }
      default:
        for (uint64_t n = 1 + below(10); n != 0; --n) {
          (*bytes)[below(head)] ^= static_cast<uint8_t>(1u << below(8));
        }
        say("bits");
    }
  }

  GgufWriter file_;
  std::mt19937_64 random_;
  std::string* what_ = nullptr;
};

// Files that loading and planning must refuse, with one line that names the fault and the remedy, and nothing left
// behind. Tests only.

class BadFiles : public testing::Test {
 protected:
  BadFiles() : path_(testing::TempDir() + "/oriel-bad-" + std::to_string(getpid()) + ".gguf") {}
  ~BadFiles() override { std::remove(path_.c_str()); }

  void write(const std::vector<uint8_t>& bytes) {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }

  /// Loads and plans `path`; both must fail alike.
  void expectRefused(const std::string& path, oriel_status status, const std::string& culprit,
                     uint64_t memory_bytes = 64u << 20) {
    Ledger ledger;
    CapturedLog log;
    Options options = makeOptions(&log);
    options.device = "cpu";
    options.memory_bytes = memory_bytes;
    options.allocator = ledger.allocator();
    oriel_model* model = nullptr;
    EXPECT_EQ(status, oriel_model_load(path.c_str(), &options, &model)) << log.errors();
    EXPECT_EQ(nullptr, model);
    oriel_model_free(model);
    expectOneLine(log, culprit);
    EXPECT_EQ(0u, ledger.live_bytes);
    if (status == ORIEL_ERROR_MEMORY_BUDGET) {
      return;
    }
    log.clear();
    oriel_plan plan = ORIEL_PLAN_INIT;
    EXPECT_EQ(status, oriel_plan_file(path.c_str(), &options, &plan));
    expectOneLine(log, culprit);
    EXPECT_EQ(0u, ledger.live_bytes);
  }
  void expectRefused(const GgufWriter& file, oriel_status status, const std::string& culprit) {
    write(file.build());
    expectRefused(path_, status, culprit);
  }
  /// As invalid, or as unsupported by this build.
  void expectRefused(const GgufWriter& file, const std::string& culprit) {
    write(file.build());
    Options options = makeOptions();
    options.device = "cpu";
    oriel_plan plan = ORIEL_PLAN_INIT;
    const oriel_status status = oriel_plan_file(path_.c_str(), &options, &plan);
    EXPECT_TRUE(status == ORIEL_ERROR_FORMAT || status == ORIEL_ERROR_UNSUPPORTED)
        << oriel_status_text(status);
    expectRefused(path_, status, culprit);
  }

  static void expectOneLine(const CapturedLog& log, const std::string& culprit) {
    const std::string said = log.errors();
    EXPECT_FALSE(said.empty());
    EXPECT_EQ(std::string::npos, said.find('\n')) << said;
    const size_t colon = said.rfind(": ");
    ASSERT_NE(std::string::npos, colon) << said;
    EXPECT_GT(colon, 10u) << said;
    EXPECT_GT(said.size() - colon, 6u) << said;
    EXPECT_NE(std::string::npos, said.find(culprit)) << said;
  }

  std::string path_;
};

}  // namespace oriel_internal::test
