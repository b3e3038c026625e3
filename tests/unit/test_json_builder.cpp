// Values made for templates.
#include <gtest/gtest.h>

#include "base/workspace.h"
#include "chat/template_run.h"
#include "support/captured_log.h"
#include "support/processor_time.h"

namespace oriel_internal::test::test_json_builder {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

// Walking a list for each element that is appended takes thousands of times as long.
TEST(JsonBuilder, appends_to_a_long_list_as_fast_as_to_a_short_one) {
  Scratch scratch(defaultAllocator(), kMostBytes);
  JsonBuilder make(&scratch);
  constexpr int kElements = 60000;
  const double apart = processorSeconds([&] {
    for (int i = 0; i < kElements; ++i) {
      make.append(make.list(), make.boolean(true));
    }
  });
  JsonMade* const list = make.list();
  const double together = processorSeconds([&] {
    for (int i = 0; i < kElements; ++i) {
      make.append(list, make.boolean(true));
    }
  });
  EXPECT_EQ(static_cast<uint32_t>(kElements), list->count());
  EXPECT_LT(together, 50 * apart + 0.01);
}

TEST(JsonBuilder, reads_many_tools_in_their_order) {
  std::string text = "[";
  for (int i = 0; i < 40000; ++i) {
    text += (i != 0 ? ",{\"name\":\"f" : "{\"name\":\"f") + std::to_string(i) + "\"}";
  }
  text += "]";
  Scratch scratch(defaultAllocator(), kMostBytes);
  CapturedLog log;
  const JsonValue* tools = nullptr;
  ASSERT_TRUE(readTools({text.data(), text.size()}, {}, log.log(), &scratch, &tools).ok());
  ASSERT_EQ(40000u, tools->count());
  int i = 0;
  for (const JsonValue* tool = tools->first(); tool != nullptr; tool = tool->next(), ++i) {
    ASSERT_TRUE(tool->find("function")->find("name")->text().is(("f" + std::to_string(i)).c_str()));
  }
  EXPECT_EQ(40000, i);
}

}  // namespace
}  // namespace oriel_internal::test::test_json_builder
