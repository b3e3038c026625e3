// Texts that an encoder reads whole, as many per step as fit.
//
// It knows: how a text, or a question and a text, become ids; which texts share a step; the step's block.
// It must never know: caches of conversations, replies, files.
#pragma once

#include "exec/feeder.h"

namespace oriel_internal {

/// A text, or ids. A model that ranks texts reads a question before the text.
struct WholeText {
  const char* text = nullptr;
  const int32_t* ids = nullptr;
  size_t count = 0;             ///< bytes, or ids
  const char* query = nullptr;  ///< null: none
  size_t query_bytes = 0;
  const char* form = nullptr;  ///< the text stands for its {document}; null: the text alone
};

class WholeTexts {
 public:
  WholeTexts(const SessionContext& context, RunningCall* call, Stepper* stepper, Feeder* feeder)
      : context_(context), call_(*call), stepper_(*stepper), feeder_(*feeder) {}

  /// Writes a row of ModelDesc::textCols() values per text. `pooling`: kPoolMean and so on. `tokens`: one count per
  /// text; may be null. All texts are checked before the first step.
  Status read(const WholeText* texts, size_t count, uint32_t pooling, float* values,
              uint32_t* tokens);

 private:
  /// A token of the step and its role in its text.
  struct Ids {
    int32_t* ids = nullptr;
    size_t capacity = 0;
    size_t second = 0;  ///< beginning of the text after a question
  };
  Status encode(const WholeText& text, Ids* out, size_t* needed);
  Status encodeTemplate(const char* form, const WholeText& text, Ids* out, size_t* needed);
  Status check(const WholeText& text, size_t number, size_t count, size_t* needed);
  Status run(uint32_t pooling, float* values);

  static constexpr uint32_t kMostTexts = 64;

  const SessionContext& context_;
  RunningCall& call_;
  Stepper& stepper_;
  Feeder& feeder_;
  // The step in preparation.
  int32_t* ids_ = nullptr;
  uint32_t n_ids_ = 0;
  uint32_t n_texts_ = 0;
  TextOfStep texts_[kMostTexts];
};

}  // namespace oriel_internal
