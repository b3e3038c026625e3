// The table of options. The library parses and checks by it; the program, the bindings and the pages read it through
// oriel_option_list().
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

enum class OptionScope : uint8_t { kLoad, kSession, kReply };
enum class OptionType : uint8_t {
  kBytes,
  kCount,
  kNumber,
  kChoice,
  kFlag,
  kText,
  kList,
  kFile,
  kFiles
};
enum class OptionLayer : uint8_t {
  kFront,
  kAdvanced,
  kLaboratory,
  kTests,  ///< not listed
};

/// Which fields of the scope's struct a value becomes.
enum class OptionStore : uint8_t {
  kU32,  ///< also enums, which are as wide
  kU64,
  kFloat,
  kDouble,
  kText,         ///< a pointer; of OptionRow::words, kNullText is null and kEmptyText ""
  kSizedText,    ///< a pointer, and the bytes in the field that follows it
  kFormats,      ///< keys' and values' formats, which follow each other
  kDevice,       ///< the kind, and the number of "vulkan:N" in the field that follows it
  kThinking,     ///< SessionSettings.chat.thinking and .no_thinking
  kTemperature,  ///< 0 is greedy
  kLogprobs,     ///< ReplyChoices.top_logprobs and .logprobs
  kByteList,     ///< numbers: a pointer into LoadLists, and a count
  kU32List,
  kTexts,     ///< texts: a pointer into LoadLists, and a count
  kTextList,  ///< an array of pointers, and a count
  kBiasList,  ///< an array of LogitBias, and a count
};

/// A word that stands for a number.
struct OptionWord {
  template <typename Value>
  constexpr OptionWord(const char* text, Value number)
      : word(text), value(static_cast<double>(number)) {}

  const char* word;
  double value;
};

struct OptionRow {
  const char* texts;  ///< the four below, each ends in NUL: one pointer is one relocation
  OptionScope scope;
  OptionType type;
  OptionLayer layer;
  OptionStore store;
  uint32_t offset;        ///< bytes, of the field in the scope's struct
  uint32_t count_offset;  ///< bytes, of a list's count
  uint32_t room_offset;   ///< bytes, of a list's elements in LoadLists
  double least;           ///< of numbers; of lists, of each element
  double most;
  const OptionWord* words;  ///< ends with a null word; null: none

  const char* name() const { return texts; }
  const char* flag() const {
    return text(1);
  }  ///< the program's; "": the name, with '-' for '_'; "-": none
  const char* standard() const { return text(2); }  ///< the default, as people read it
  const char* help() const { return text(3); }      ///< one line

 private:
  const char* text(uint32_t number) const;
};

constexpr double kNullText = 0;
constexpr double kEmptyText = 1;

extern const OptionRow kOptions[];
extern const size_t kOptionCount;
constexpr size_t kMostOptions = 128;

const char* scopeName(OptionScope scope);
const char* typeName(OptionType type);
const char* layerName(OptionLayer layer);

}  // namespace oriel_internal
