// Options: their table, and values given by name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/choices.h"
#include "base/log.h"
#include "json/json.h"

namespace oriel_internal {

// The option table. The library parses and checks options with it; the program, the bindings and the pages read it
// through oriel_option_list().

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

/// The fields of the scope's struct that store the value.
enum class OptionStore : uint8_t {
  kU32,  ///< also enums, which have the same width
  kU64,
  kFloat,
  kDouble,
  kText,         ///< a pointer; words of OptionRow: kNullText is null and kEmptyText ""
  kSizedText,    ///< a pointer, and the size in the next field
  kFormats,      ///< formats of keys and values, in two adjacent fields
  kDevice,       ///< the kind, and the number in "vulkan:N" in the next field
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
  const char* texts;  ///< the four texts below, each NUL-terminated; one pointer needs one
                      ///< relocation
  OptionScope scope;
  OptionType type;
  OptionLayer layer;
  OptionStore store;
  uint32_t offset;        ///< bytes; the field in the scope's struct
  uint32_t count_offset;  ///< bytes; the count of a list
  uint32_t room_offset;   ///< bytes; a list's elements in LoadLists
  double least;           ///< of a number, or of each list element
  double most;
  const OptionWord* words;  ///< ends with a null word; may be null

  const char* name() const { return texts; }
  const char* flag() const {
    return text(1);
  }  ///< the program's flag; "": the name with '-' for '_'; "-": none
  const char* standard() const { return text(2); }  ///< the default, as users read it
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

// Options given by name.

/// Writes the settings into `options`: LoadOptions, SessionSettings or ReplyChoices, by `scope`. Texts are not copied.
/// `lists` may be null for scopes without numeric lists. Returns ORIEL_ERROR_ARGUMENT, with a line, for an unknown name,
/// a name of another scope or a refused value.
Status applySettings(OptionScope scope, const oriel_setting* settings, size_t count, const Log& log,
                     void* options, LoadLists* lists);

/// Parses a front field's text by the row of that name. Null changes nothing.
Status applyText(OptionScope scope, const char* name, const char* text, const Log& log,
                 void* options);

/// Refuses numbers outside the rows' ranges. Front fields arrive unchecked.
Status checkRanges(OptionScope scope, const void* options, const Log& log);

/// Writes the values that differ from the default as members of a JSON object, {"window": "4096", ...}. Texts over 256
/// bytes are truncated. Rows for tests are left out.
void writeSettings(OptionScope scope, const void* options, const JsonSink& sink);

}  // namespace oriel_internal
