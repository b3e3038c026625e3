// Options by name: the table, allowed values, and errors for others.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "options/settings.h"
#include "support/captured_log.h"
#include "support/describe.h"

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

struct All {
  Load load;
  SessionSettings session;
  ReplyChoices reply;
};

struct ByField {
  const char* name;
  const char* value;
  void (*set)(All* all, const char* value);
};

#define SETS(name, value, statement)         \
  {                                          \
    name, value, [](All* a, const char* v) { \
      (void)v;                               \
      statement;                             \
    }                                        \
  }

// Each option with a value, and the fields it sets.
const ByField kByField[] = {
    SETS("memory", "64MiB", a->load.memory_bytes = 64u << 20),
    SETS("window", "max", a->load.window_tokens = ORIEL_WINDOW_MAX),
    SETS("sessions", "3", a->load.sessions = 3),
    SETS("device", "cpu", a->load.device = DeviceKind::kCpu),
    SETS("threads", "5", a->load.cpu_threads = 5),
    SETS("cache_folder", "f", a->load.cache_dir = v),
    SETS("prepared_dir", "f", a->load.prepared_dir = v),
    SETS("prepared_bytes", "1MB", a->load.prepared_bytes = 1000000),
    SETS("system_prompt", "Hi", (a->load.system_prompt = v, a->load.system_prompt_bytes = 2)),
    SETS("min_speed", "2.5", a->load.min_tokens_per_s = 2.5),
    SETS("min_window", "9", a->load.min_window_tokens = 9),
    SETS("sinks", "7", a->load.sink_tokens = 7),
    SETS("kv", "k8v4", (a->load.k_format = ORIEL_KV_INT8, a->load.v_format = ORIEL_KV_INT4)),
    SETS("state", "int8", a->load.state_format = StateChoice::kInt8),
    SETS("offload", "rows", a->load.on_file = Offload::kRows),
    SETS("expert_slots", "7", a->load.expert_slots = 7),
    SETS("checkpoints", "0", a->load.checkpoints = UINT32_MAX),
    SETS("speculate", "4", a->load.draft_tokens = 4),
    SETS("draft_model", "f", a->load.draft_model = v),
    SETS("mmproj", "f", a->load.mmproj = v),
    SETS("image_tokens", "70", a->load.image_tokens = 70),
    SETS("lora", "f:2", (a->load.lora = a->load.lists.lora, a->load.lora_count = 1)),
    SETS("control_vector", "f",
         (a->load.control_vectors = a->load.lists.control_vectors,
          a->load.control_vector_count = 1)),
    SETS("control_layers", "2,5",
         (a->load.control_layers = a->load.lists.control_layers, a->load.control_layer_count = 2)),
    SETS("retrieval", "1MB", a->load.recall_bytes = 1000000),
    SETS("retrieval_tokens", "64", a->load.recall_tokens = 64),
    SETS("retrieval_folder", "f", a->load.recall_dir = v),
    SETS("calibration", "f", a->load.calibration_file = v),
    SETS("prefill_batch", "16", a->load.chunk_tokens = 16),
    SETS("transcript", "4096", a->load.transcript_bytes = 4096),
    SETS("constraints", "true", a->load.constraints = 1),
    SETS("session_windows", "9,8",
         (a->load.session_windows = a->load.lists.session_windows,
          a->load.session_window_count = 2)),
    SETS("prefix_tokens", "7", a->load.prefix_tokens = 7),
    SETS("prefix_file", "f", a->load.prefix_file = v),
    SETS("activation_bits", "8", a->load.activation_bits = 8),
    SETS("device_timeout_ms", "9", a->load.device_timeout_ms = 9),
    SETS("device_test", "never", a->load.device_test = DeviceTest::kNever),
    SETS("enable_features", "f", a->load.enabled_features = v),
    SETS("disable_features", "f", a->load.disabled_features = v),
    SETS("window_shares", "1,2",
         (a->load.window_shares = a->load.lists.window_shares, a->load.window_share_count = 2)),
    SETS("f16_layers", "0,1",
         (a->load.f16_layers = a->load.lists.f16_layers, a->load.f16_layer_count = 2)),
    SETS("template", "gemma3", a->session.chat.chat_template = v),
    SETS("thinking", "on", a->session.chat.thinking = 1),
    SETS("tools", "[]", (a->session.chat.tools = v, a->session.chat.tools_bytes = 2)),
    SETS("documents", "[]", (a->session.chat.documents = v, a->session.chat.documents_bytes = 2)),
    SETS("template_variables", "{}",
         (a->session.chat.variables = v, a->session.chat.variables_bytes = 2)),
    SETS("date", "20260102", a->session.chat.date = 20260102),
    SETS("adapters", "a:2", a->session.adapters = v),
    SETS("evict", "tokens", a->session.split_turns = 1),
    SETS("forget", "true", a->session.forget_evicted = 1),
    SETS("follow_template", "true", a->session.follow_template = 1),
    SETS("session_window", "9", a->session.window_tokens = 9),
    SETS("max_tokens_per_s", "0.5", a->session.max_tokens_per_s = 0.5),
    SETS("duty", "0.5", a->session.duty = 0.5),
    SETS("assumed_tokens", "9", a->session.assumed_tokens = 9),
    SETS("first_position", "9", a->session.first_position = 9),
    SETS("max_tokens", "9", a->reply.max_tokens = 9),
    SETS("max_thought_tokens", "0", a->reply.max_thought_tokens = UINT32_MAX),
    SETS("temperature", "0.5", a->reply.temperature = 0.5f),
    SETS("seed", "18446744073709551615", a->reply.seed = UINT64_MAX),
    SETS("schema", "{}", (a->reply.json_schema = v, a->reply.json_schema_bytes = 2)),
    SETS("grammar", "ab", (a->reply.grammar = v, a->reply.grammar_bytes = 2)),
    SETS("tool_choice", "required", a->reply.tool_choice = ToolChoice::kRequired),
    SETS("greedy", "true", a->reply.greedy = 1),
    SETS("top_k", "0", a->reply.top_k = UINT32_MAX),
    SETS("top_p", "0.5", a->reply.top_p = 0.5f),
    SETS("min_p", "0", a->reply.min_p = -1.0f),
    SETS("repeat_penalty", "1.5", a->reply.repeat_penalty = 1.5f),
    SETS("presence_penalty", "-2", a->reply.presence_penalty = -2.0f),
    SETS("frequency_penalty", "2", a->reply.frequency_penalty = 2.0f),
    SETS("repeat_window", "9", a->reply.repeat_window = 9),
    SETS("typical_p", "0.5", a->reply.typical_p = 0.5f),
    SETS("top_n_sigma", "1.5", a->reply.top_n_sigma = 1.5f),
    SETS("xtc_probability", "0.5", a->reply.xtc_probability = 0.5f),
    SETS("xtc_threshold", "0.2", a->reply.xtc_threshold = 0.2f),
    SETS("dry_multiplier", "0.8", a->reply.dry_multiplier = 0.8f),
    SETS("dry_base", "2", a->reply.dry_base = 2.0f),
    SETS("dry_allowed_length", "3", a->reply.dry_allowed_length = 3),
    SETS("dry_window", "9", a->reply.dry_window = 9),
    SETS("dry_breakers", "b", (a->reply.dry_breakers[0] = v, a->reply.dry_breakers_count = 1)),
    SETS("min_tokens", "9", a->reply.min_tokens = 9),
    SETS("ignore_stop", "true", a->reply.ignore_stop = 1),
    SETS("stop", "s", (a->reply.stop[0] = v, a->reply.stop_count = 1)),
    SETS("logit_bias", "7:-1.5",
         (a->reply.logit_bias[0] = {7, -1.5f}, a->reply.logit_bias_count = 1)),
    SETS("strict_schema", "true", a->reply.strict_schema = 1),
    SETS("open_objects", "true", a->reply.open_objects = 1),
    SETS("value_parts", "true", a->reply.value_parts = 1),
    SETS("trigger", "t", a->reply.trigger = v),
    SETS("top_logprobs", "3", (a->reply.logprobs = 1, a->reply.top_logprobs = 3)),
    SETS("draft", "never", a->reply.draft = DraftChoice::kNever),
};

const ByField* byField(const OptionRow& row) {
  for (const ByField& one : kByField) {
    if (std::strcmp(one.name, row.name()) == 0) {
      return &one;
    }
  }
  return nullptr;
}

void* structOf(OptionScope scope, All* all) {
  return scope == OptionScope::kLoad ? static_cast<void*>(static_cast<LoadOptions*>(&all->load))
         : scope == OptionScope::kSession ? static_cast<void*>(&all->session)
                                          : static_cast<void*>(&all->reply);
}

TEST(Settings, every_row_sets_what_its_fields_set) {
  EXPECT_EQ(kOptionCount, sizeof(kByField) / sizeof(kByField[0]));
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    const ByField* const expected = byField(row);
    ASSERT_NE(nullptr, expected) << row.name();
    All all;
    std::memset(static_cast<void*>(&all), 0, sizeof(all));
    const oriel_setting setting = {row.name(), expected->value};
    CapturedLog log;
    ASSERT_TRUE(
        applySettings(row.scope, &setting, 1, log.log(), structOf(row.scope, &all), &all.load.lists)
            .ok())
        << row.name() << ": " << log.errors();
    const auto bytesOf = [](const All& one) {
      return std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(&one),
                                  reinterpret_cast<const uint8_t*>(&one) + sizeof(one));
    };
    const std::vector<uint8_t> by_name = bytesOf(all);
    const LoadLists lists = all.load.lists;
    std::memset(static_cast<void*>(&all), 0, sizeof(all));
    expected->set(&all, expected->value);
    all.load.lists = lists;
    EXPECT_EQ(by_name, bytesOf(all)) << row.name();
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
  EXPECT_EQ("the option \"temperature\" does not belong to a load: give it to the reply",
            refusal("temperature", "1"));
  EXPECT_EQ("the option \"kv\" cannot be \"k9v9\": give auto, f16, k8v8, k8v4 or k4v4",
            refusal("kv", "k9v9"));
  EXPECT_EQ(
      "the option \"window\" cannot be \"5000000\": give max or a whole number from 0 to "
      "4194304",
      refusal("window", "5000000"));
  EXPECT_EQ("the option \"temperature\" cannot be \"hot\": give a number from 0 to 100",
            replyRefusal("temperature", "hot"));
  EXPECT_EQ(
      "the option \"seed\" cannot be \"18446744073709551616\": give a whole number from 0 to "
      "18446744073709551615",
      replyRefusal("seed", "18446744073709551616"));
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

TEST(Settings, the_list_is_json_with_a_row_for_each_option_that_is_no_hook_of_tests) {
  Json list = described(oriel_option_list)["options"];
  size_t at = 0;
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    if (row.layer == OptionLayer::kTests) {
      continue;
    }
    const Json& one = list.at(at++);
    EXPECT_EQ(row.name(), one.at("name"));
    EXPECT_EQ(scopeName(row.scope), one.at("scope"));
    EXPECT_EQ(layerName(row.layer), one.at("layer"));
    EXPECT_EQ(typeName(row.type), one.at("type"));
    EXPECT_EQ(row.standard(), one.at("default"));
    EXPECT_EQ(row.help(), one.at("help"));
  }
  EXPECT_EQ(at, list.size());
}

TEST(Settings, names_are_unique_and_texts_need_no_escapes) {
  std::set<std::string> names;
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    EXPECT_TRUE(names.insert(std::string(scopeName(row.scope)) + row.name()).second) << row.name();
    for (const char* const part : {row.name(), row.help(), row.standard()}) {
      EXPECT_EQ(nullptr, std::strpbrk(part, "\"\\\n")) << row.name();
    }
    EXPECT_LT(std::strlen(row.help()), 120u) << row.name();
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_settings
