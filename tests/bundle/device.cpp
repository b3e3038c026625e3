#include "bundle/checks.h"

#include <stdexcept>

#include "support/timing.h"

namespace oriel_internal::bundle {
namespace {

std::string last_error;

void keepError(oriel_log_level level, const char* message, void*) {
  if (level == ORIEL_LOG_ERROR) {
    last_error = message;
  }
}

}  // namespace

std::string lastError() { return last_error; }
void clearLastError() { last_error.clear(); }

Options Device::options() const {
  Options options;
  options.memory_bytes = 256u << 20;
  options.device = option.c_str();
  options.set("device_timeout_ms", test::deviceTimeoutMs());
  options.set("activation_bits", "16");
  if (!disabled.empty()) {
    options.set("disable_features", disabled);
  }
  options.log = keepError;
  return options;
}

void require(oriel_status status, const std::string& what) {
  if (status != ORIEL_OK) {
    throw std::runtime_error(what + ": " + oriel_status_text(status) +
                             (last_error.empty() ? "" : " (" + last_error + ")"));
  }
}

Loaded open(const std::string& path, const Options& options) {
  Loaded loaded;
  oriel_model* model = nullptr;
  require(oriel_model_load(path.c_str(), &options, &model), "loading");
  loaded.model.reset(model);
  oriel_session* session = nullptr;
  require(oriel_session_create(model, nullptr, &session), "creating a session");
  loaded.session.reset(session);
  return loaded;
}

std::vector<float> logits(const Loaded& loaded) {
  const float* values = nullptr;
  size_t count = 0;
  require(oriel_session_logits(loaded.session.get(), &values, &count), "reading logits");
  return {values, values + count};
}

void append(const Loaded& loaded, const std::vector<int32_t>& ids) {
  require(oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr),
          "appending");
}

std::vector<std::vector<float>> evaluate(const Loaded& loaded, const std::vector<int32_t>& ids) {
  std::vector<std::vector<float>> rows;
  require(oriel_session_append(loaded.session.get(), ids.data(), ids.size(), test::keepRow, &rows),
          "evaluating");
  return rows;
}

std::vector<int32_t> greedy(const Loaded& loaded, uint32_t tokens) {
  ReplyOptions options = test::greedyOptions(tokens);
  options.set("ignore_stop", true);
  std::vector<int32_t> ids;
  require(oriel_session_generate(loaded.session.get(), &options, test::keepId, &ids, nullptr),
          "generating");
  if (ids.size() > tokens) {
    ids.resize(tokens);  // the last event may carry the rest of a character
  }
  return ids;
}

}  // namespace oriel_internal::bundle
