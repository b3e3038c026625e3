// The device under test and the bundle's folder; models opened on it through the public API.
#pragma once

#include <string>
#include <vector>

#include "oriel/tools.h"
#include "support/options.h"

namespace oriel_internal::bundle {

using test::Loaded;
using test::Options;
using test::ReplyOptions;
using test::SessionOptions;

struct Device {
  std::string option = "cpu";  ///< as in Options.device
  std::string data;            ///< the bundle's folder
  std::string scratch;         ///< a private folder for this run, removed at the end
  std::string disabled;        ///< optional Vulkan features to disable, as in Options
  std::string only;  ///< a group, or a group/ and the start of a model's name; "": everything

  std::string model(const std::string& name) const { return data + "/models/" + name + ".gguf"; }
  bool wants(const std::string& group) const {
    return only.empty() || only.substr(0, only.find('/')) == group;
  }
  bool wantsModel(const std::string& name) const {
    return only.find('/') == std::string::npos || ("models/" + name).rfind(only, 0) == 0;
  }
  /// 256 MiB, no cache folder, the log kept in lastError().
  Options options() const;
};

/// The latest error line; empty if nothing failed since `clear`.
std::string lastError();
void clearLastError();

/// Opens a model with a session, or throws std::runtime_error with the reason.
Loaded open(const std::string& path, const Options& options);

/// Logits after the last appended token.
std::vector<float> logits(const Loaded& loaded);
void append(const Loaded& loaded, const std::vector<int32_t>& ids);
/// Logits after each token.
std::vector<std::vector<float>> evaluate(const Loaded& loaded, const std::vector<int32_t>& ids);
std::vector<int32_t> greedy(const Loaded& loaded, uint32_t tokens);

/// Throws std::runtime_error if the call failed.
void require(oriel_status status, const std::string& what);

}  // namespace oriel_internal::bundle
