// The table of options as JSON.
#include <cstring>

#include "api/describe.h"

namespace oriel_internal {
namespace {

bool hasRange(const OptionRow& row) {
  return row.type == OptionType::kCount || row.type == OptionType::kNumber ||
         row.type == OptionType::kList;
}

// The program's spelling, with '-' instead of '_'.
void writeFlag(const OptionRow& row, JsonWriter* out) {
  char flag[64];
  const char* const written = row.flag()[0] != '\0' ? row.flag() : row.name();
  copyText(written, std::strlen(written), flag);
  for (char* c = flag; *c != '\0'; ++c) {
    *c = *c == '_' ? '-' : *c;
  }
  out->text("flag", std::strcmp(flag, "-") == 0 ? "" : flag);
}

void writeRow(const OptionRow& row, JsonWriter* out) {
  out->object();
  out->text("name", row.name());
  writeFlag(row, out);
  out->text("scope", scopeName(row.scope));
  out->text("layer", layerName(row.layer));
  out->text("type", typeName(row.type));
  out->text("default", row.standard());
  if (hasRange(row)) {
    out->real("least", row.least);
    out->real("most", row.most);
  }
  if (row.words != nullptr) {
    out->list("choices");
    for (const OptionWord* word = row.words; word->word != nullptr; ++word) {
      out->text(nullptr, word->word);
    }
    out->end();
  }
  out->text("help", row.help());
  out->end();
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_option_list(char* json, size_t capacity, size_t* needed) {
  if (!validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  JsonWriter out(json, capacity);
  out.object();
  out.list("options");
  for (size_t i = 0; i < kOptionCount; ++i) {
    if (kOptions[i].layer != OptionLayer::kTests) {
      writeRow(kOptions[i], &out);
    }
  }
  out.end();
  out.end();
  return out.finish(needed);
}
