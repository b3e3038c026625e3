// A model file in memory and its description by readModelDesc. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/scratch.h"
#include "model/model_desc.h"
#include "model/tensor_index.h"
#include "tests/support/captured_log.h"
#include "tests/support/gguf_writer.h"

namespace oriel_internal::test {

struct Described {
  explicit Described(const GgufWriter& writer) : image(writer.build()), file(new GgufFile) {
    EXPECT_TRUE(file->open(image.data(), image.size(), log.log()).ok()) << log.errors();
    status = readModelDesc(*file, defaultAllocator(), log.log(), &desc, &tensors).code();
    EXPECT_EQ(status == ORIEL_OK, log.errors().empty());
  }

  std::vector<uint8_t> image;
  CapturedLog log;
  std::unique_ptr<GgufFile> file;
  ModelDesc desc;
  TensorIndex tensors;
  oriel_status status = ORIEL_OK;
};

}  // namespace oriel_internal::test
