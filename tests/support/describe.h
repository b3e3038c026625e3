// The results of the describe calls (docs/reference/describe.md), parsed.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "model/keys.h"
#include "model/model_desc.h"
#include "oriel/tools.h"
#include "support/options.h"
#include "tests/support/captured_log.h"
#include "tests/support/gguf_writer.h"

namespace oriel_internal::test {

using Json = nlohmann::json;

/// The text of a call that fills a buffer: `call(text, capacity, &needed)`. "" and a test failure if the call fails.
template <typename Call>
std::string filledText(const Call& call) {
  size_t needed = 0;
  std::string text(8192, '\0');
  oriel_status status = call(text.data(), text.size(), &needed);
  while (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call(text.data(), text.size(), &needed);
  }
  EXPECT_EQ(ORIEL_OK, status);
  if (status != ORIEL_OK || needed == 0) {
    return "";
  }
  EXPECT_EQ('\0', text[needed - 1]);
  text.resize(needed - 1);
  return text;
}

/// The same, parsed. An empty object if the call fails.
template <typename Call>
Json described(const Call& call) {
  const std::string text = filledText(call);
  return text.empty() ? Json::object() : Json::parse(text);
}

inline Json describe(const oriel_model* model) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_model_describe(model, text, capacity, needed);
  });
}
inline Json describe(const oriel_session* session) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_session_describe(session, text, capacity, needed);
  });
}
inline Json describe(const ModelPtr& model) { return describe(model.get()); }
inline Json describe(const SessionPtr& session) { return describe(session.get()); }

inline Json describe(const Loaded& loaded) { return describe(loaded.session); }

/// A counter of a session.
template <typename Session>
uint64_t countOf(const Session& session, const char* name) {
  return describe(session).at(name);
}

inline Json describePlan(const std::string& path, const Options& options) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_plan_describe(path.c_str(), &options, text, capacity, needed);
  });
}
inline Json describeShape(const std::string& shape, const Options& options) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_shape_describe(shape.c_str(), &options, text, capacity, needed);
  });
}
inline Json describeFile(const std::string& path, const Options& options) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_file_describe(path.c_str(), &options, text, capacity, needed);
  });
}
inline Json describeDevices(const Options& options, uint32_t flags = 0) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_device_describe(&options, flags, text, capacity, needed);
  })["devices"];
}
inline Json describeSnapshot(const void* data, size_t bytes) {
  return described([&](char* text, size_t capacity, size_t* needed) {
    return oriel_snapshot_describe(nullptr, data, bytes, nullptr, text, capacity, needed);
  });
}

/// A plan's struct, and its JSON.
struct FullPlan : oriel_plan {
  Json all;

  const Json& operator[](const char* name) const { return all.at(name); }
  uint64_t count(const char* name) const { return all.at(name); }
  double number(const char* name) const { return all.at(name); }
  /// Bytes that remain after oriel_trim.
  uint64_t trimBytes(oriel_trim_level level) const {
    return all.at("trim_levels").at(static_cast<size_t>(level)).at("bytes");
  }
};
inline FullPlan planOf(const oriel_model* model) {
  FullPlan plan = {ORIEL_PLAN_INIT, {}};
  EXPECT_EQ(ORIEL_OK, oriel_model_get_plan(model, &plan));
  plan.all = describe(model)["plan"];
  return plan;
}
inline oriel_kv_format formatOf(const Json& name) {
  return name == "f16" ? ORIEL_KV_F16 : name == "int8" ? ORIEL_KV_INT8 : ORIEL_KV_INT4;
}
/// For a published shape, which has no call that fills the struct. Unknown values are 0.
inline FullPlan planOfShape(const std::string& shape, const Options& options) {
  FullPlan plan = {ORIEL_PLAN_INIT, describeShape(shape, options)};
  const auto number = [&](const char* name, auto* out) {
    const Json& value = plan.all.at(name);
    *out = value.is_null() ? 0 : value.get<std::remove_pointer_t<decltype(out)>>();
  };
  plan.weights_unknown = plan.all.at("fits").is_null() ? 1 : 0;
  plan.fits = plan.all.at("fits") == true ? 1 : 0;
  number("memory_bytes", &plan.memory_bytes);
  number("total_bytes", &plan.total_bytes);
  number("weights_bytes", &plan.weights_bytes);
  number("kv_bytes", &plan.kv_bytes);
  number("activation_bytes", &plan.activation_bytes);
  number("staging_bytes", &plan.staging_bytes);
  number("host_bytes", &plan.host_bytes);
  number("minimum_bytes", &plan.minimum_bytes);
  number("kv_bytes_per_token", &plan.kv_bytes_per_token);
  number("window_tokens", &plan.window_tokens);
  number("sink_tokens", &plan.sink_tokens);
  number("chunk_tokens", &plan.prefill_batch_tokens);
  number("sessions", &plan.sessions);
  number("context_train_tokens", &plan.context_train_tokens);
  number("loss_nats", &plan.loss_nats);
  plan.k_format = formatOf(plan.all.at("k_format"));
  plan.v_format = formatOf(plan.all.at("v_format"));
  return plan;
}
/// All published shapes.
inline Json shapes() { return described(oriel_shape_list).at("shapes"); }

/// For a plan that must succeed.
inline FullPlan planOf(const std::string& path, const Options& options) {
  FullPlan plan = {ORIEL_PLAN_INIT, {}};
  EXPECT_EQ(ORIEL_OK, oriel_plan_file(path.c_str(), &options, &plan));
  plan.all = describePlan(path, options);
  return plan;
}

// A model file in memory and its description by readModelDesc. Tests only.

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
