#include "reply/fill_in.h"

#include "output.h"

namespace cli {
namespace {

void append(const std::vector<int32_t>& from, std::vector<int32_t>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

int32_t idIn(const Model& model, const char* field) {
  const Json& id = model.info().at(field);
  if (!id.is_number()) {
    throw Failure{kExitFailed,
                  "the model has no tokens to fill in the middle: use a code model that has, as "
                  "Qwen2.5-Coder"};
  }
  return id.get<int32_t>();
}

/// In the format of Qwen's and StarCoder's training; for other models the files are plain text.
std::vector<int32_t> idsOf(const Model& model, const OtherFile& file) {
  for (const char* const mark : {"<|file_sep|>", "<file_sep>"}) {
    std::vector<int32_t> ids = model.tokenize(mark, ORIEL_TEXT_SPECIAL);
    if (ids.size() == 1) {
      append(model.tokenize(file.name + "\n" + file.text + "\n", 0), &ids);
      return ids;
    }
  }
  return model.tokenize(file.name + ":\n" + file.text + "\n\n", 0);
}

}  // namespace

std::vector<int32_t> fillInIds(const Model& model, const Gap& gap) {
  std::vector<int32_t> ids = model.tokenize("", ORIEL_TEXT_BOS);
  const int32_t prefix = idIn(model, "fill_prefix_id");
  for (const OtherFile& file : gap.others) {
    append(idsOf(model, file), &ids);
  }
  ids.push_back(prefix);
  append(model.tokenize(gap.prefix, 0), &ids);
  ids.push_back(idIn(model, "fill_suffix_id"));
  append(model.tokenize(gap.suffix, 0), &ids);
  ids.push_back(idIn(model, "fill_middle_id"));
  return ids;
}

}  // namespace cli
