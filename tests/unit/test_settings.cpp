// Options by name: the table, the values that it allows, and what is said of others.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "options/settings.h"
#include "support/captured_log.h"

namespace oriel_internal::test::test_settings {
namespace {

struct Load : LoadOptions {
  LoadLists lists;
};

Load emptyLoad() {
  Load options;
  std::memset(static_cast<void*>(&options), 0, sizeof(options));
  return options;
}

Status give(Load* options, const char* name, const char* value, CapturedLog* log) {
  const oriel_setting setting = {name, value};
  return applySettings(OptionScope::kLoad, &setting, 1, log->log(),
                       static_cast<LoadOptions*>(options), &options->lists);
}

std::string refusal(const char* name, const char* value) {
  CapturedLog log;
  Load options = emptyLoad();
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, give(&options, name, value, &log).code()) << name << value;
  return log.errors();
}

std::string replyRefusal(const char* name, const char* value) {
  CapturedLog log;
  ReplyChoices options = {};
  const oriel_setting setting = {name, value};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            applySettings(OptionScope::kReply, &setting, 1, log.log(), &options, nullptr).code());
  return log.errors();
}

// A value that the row allows, and is not its default.
std::string someValue(const OptionRow& row) {
  if (row.words != nullptr && row.type != OptionType::kCount && row.type != OptionType::kNumber) {
    return row.words[0].word;
  }
  switch (row.type) {
    case OptionType::kBytes:
      return "64MiB";
    case OptionType::kNumber:
      return "0.5";
    case OptionType::kList:
      return "1,0,1";
    case OptionType::kCount:
      return row.most < 7 ? "1" : "7";
    default:
      return "text";
  }
}

TEST(Settings, every_row_takes_a_value_and_changes_its_fields_alone) {
  struct All {
    LoadOptions load;
    LoadLists lists;
    SessionSettings session;
    ReplyChoices reply;
  };
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    All all;
    std::memset(static_cast<void*>(&all), 0xAB, sizeof(all));
    void* const options = row.scope == OptionScope::kLoad      ? static_cast<void*>(&all.load)
                          : row.scope == OptionScope::kSession ? static_cast<void*>(&all.session)
                                                               : static_cast<void*>(&all.reply);
    const size_t bytes = row.scope == OptionScope::kLoad      ? sizeof(all.load)
                         : row.scope == OptionScope::kSession ? sizeof(all.session)
                                                              : sizeof(all.reply);
    const std::string value = someValue(row);
    const oriel_setting setting = {row.name, value.c_str()};
    CapturedLog log;
    ASSERT_EQ(ORIEL_OK,
              applySettings(row.scope, &setting, 1, log.log(), options, &all.lists).code())
        << row.name << ": " << log.errors();
    std::vector<uint8_t> after(bytes);
    std::memcpy(after.data(), options, bytes);
    size_t changed = 0;
    for (const uint8_t byte : after) {
      changed += byte != 0xAB ? 1 : 0;
    }
    EXPECT_GE(changed, 1u) << row.name;
    EXPECT_LE(changed, 16u) << row.name;
    EXPECT_NE(0xAB, after[row.offset]) << row.name;
  }
}

TEST(Settings, values_become_what_fields_say) {
  CapturedLog log;
  Load options = emptyLoad();
  EXPECT_TRUE(give(&options, "memory", "300MB", &log).ok());
  EXPECT_EQ(300'000'000u, options.memory_bytes);
  EXPECT_TRUE(give(&options, "memory", "1.5GiB", &log).ok());
  EXPECT_EQ(uint64_t{3} << 29, options.memory_bytes);
  EXPECT_TRUE(give(&options, "memory", "262144", &log).ok());
  EXPECT_EQ(262144u, options.memory_bytes);
  EXPECT_TRUE(give(&options, "window", "max", &log).ok());
  EXPECT_EQ(ORIEL_WINDOW_MAX, options.window_tokens);
  EXPECT_TRUE(give(&options, "sinks", "0", &log).ok());
  EXPECT_EQ(UINT32_MAX, options.sink_tokens);
  EXPECT_TRUE(give(&options, "kv", "K8V4", &log).ok());
  EXPECT_EQ(ORIEL_KV_INT8, options.k_format);
  EXPECT_EQ(ORIEL_KV_INT4, options.v_format);
  EXPECT_TRUE(give(&options, "device", "vulkan:2", &log).ok());
  EXPECT_EQ(DeviceKind::kVulkan, options.device);
  EXPECT_EQ(3u, options.device_number);
  EXPECT_TRUE(give(&options, "device", "cpu", &log).ok());
  EXPECT_EQ(DeviceKind::kCpu, options.device);
  EXPECT_EQ(0u, options.device_number);
  EXPECT_TRUE(give(&options, "calibration", "none", &log).ok());
  EXPECT_STREQ("", options.calibration_file);
  EXPECT_TRUE(give(&options, "calibration", "a file", &log).ok());
  EXPECT_STREQ("a file", options.calibration_file);
  EXPECT_TRUE(give(&options, "system_prompt", "Be kind.", &log).ok());
  EXPECT_EQ(8u, options.system_prompt_bytes);
  EXPECT_TRUE(give(&options, "session_windows", "1024,512", &log).ok());
  ASSERT_EQ(2u, options.session_window_count);
  EXPECT_EQ(512u, options.session_windows[1]);
  EXPECT_TRUE(give(&options, "constraints", "true", &log).ok());
  EXPECT_EQ(1u, options.constraints);

  ReplyChoices reply = {};
  const oriel_setting cold[] = {{"temperature", "0"}, {"min_p", "0"}, {"top_p", "0.9"}};
  EXPECT_TRUE(applySettings(OptionScope::kReply, cold, 3, log.log(), &reply, nullptr).ok());
  EXPECT_EQ(1u, reply.greedy);
  EXPECT_EQ(-1.0f, reply.min_p);
  EXPECT_EQ(0.9f, reply.top_p);

  SessionSettings session = {};
  const oriel_setting chat[] = {{"thinking", "off"}, {"evict", "tokens"}};
  EXPECT_TRUE(applySettings(OptionScope::kSession, chat, 2, log.log(), &session, nullptr).ok());
  EXPECT_EQ(1u, session.chat.no_thinking);
  EXPECT_EQ(0u, session.chat.thinking);
  EXPECT_EQ(1u, session.split_turns);
  EXPECT_EQ("", log.errors());
}

TEST(Settings, what_is_wrong_is_named_with_what_would_be_right) {
  EXPECT_EQ("the option \"windw\" is not known: did you mean \"window\"?", refusal("windw", "1"));
  EXPECT_EQ("the option \"colour\" is not known: `oriel options` lists them",
            refusal("colour", "1"));
  EXPECT_EQ("the option \"temperature\" is none of a load: give it to the reply",
            refusal("temperature", "1"));
  EXPECT_EQ("the option \"kv\" cannot be \"k9v9\": give auto, f16, k8v8, k8v4 or k4v4",
            refusal("kv", "k9v9"));
  EXPECT_EQ(
      "the option \"window\" cannot be \"5000000\": give max or a whole number from 0 to "
      "4194304",
      refusal("window", "5000000"));
  EXPECT_EQ("the option \"temperature\" cannot be \"hot\": give a number from 0 to 100",
            replyRefusal("temperature", "hot"));
  EXPECT_NE("", refusal(std::string(5000, 'x').c_str(), "1"));
  EXPECT_NE("", refusal("", "1"));
  for (const char* const wrong :
       {"", "-1", " 7", "7 ", "7x", "0x10", "1e3", "99999999999999999999"}) {
    EXPECT_NE("", refusal("window", wrong));
    EXPECT_NE("", refusal("session_windows", wrong));
    EXPECT_NE("", refusal("device", wrong));
  }
  for (const char* const wrong : {"1,,2", ",", "1,", "1,2,4194305"}) {
    EXPECT_NE("", refusal("session_windows", wrong));
  }
  for (const char* const wrong : {"", "-1", "1.5", "MiB", "1 PB", "1Mi", "20000000 TB", "nan"}) {
    EXPECT_NE("", refusal("memory", wrong)) << wrong;
  }
  for (const char* const wrong : {"", "-1", "101", "nan", "inf", "0,5", "."}) {
    EXPECT_NE("", replyRefusal("temperature", wrong)) << wrong;
  }
  std::string many = "1";
  for (int i = 0; i < 2000; ++i) {
    many += ",1";
  }
  EXPECT_NE("", refusal("window_shares", many.c_str()));
  EXPECT_NE("", refusal("window", nullptr));
  EXPECT_NE("", refusal(nullptr, "1"));
}

TEST(Settings, the_list_is_json_with_a_row_for_each_option) {
  size_t bytes = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_option_list(nullptr, 0, &bytes));
  std::string text(bytes, '?');
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_option_list(&text[0], bytes - 1, &bytes));
  ASSERT_EQ(ORIEL_OK, oriel_option_list(&text[0], bytes, &bytes));
  EXPECT_EQ('\0', text.back());
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_option_list(nullptr, 0, nullptr));
  text.pop_back();
  size_t rows = 0;
  for (size_t at = 0; (at = text.find("{\"name\": \"", at)) != std::string::npos; ++at) {
    ++rows;
  }
  EXPECT_EQ(kOptionCount, rows);
  std::set<std::string> names;
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    EXPECT_TRUE(names.insert(std::string(scopeName(row.scope)) + row.name).second) << row.name;
    for (const char* const part : {row.name, row.help, row.standard}) {
      EXPECT_EQ(nullptr, std::strpbrk(part, "\"\\\n")) << row.name;
    }
    EXPECT_LT(std::strlen(row.help), 120u) << row.name;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_settings
