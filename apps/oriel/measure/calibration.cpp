#include "measure/calibration.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "output.h"
#include "system.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr int kSidecarVersion = 1;
// Covers the header and some weights; avoids reading the whole file.
constexpr uint64_t kHashedBytes = 1 << 20;

struct Constant {
  const char* name;
  double oriel_calibration::*value;
};
constexpr Constant kConstants[] = {
    {"forget_scale", &oriel_calibration::forget_scale},
    {"forget_power", &oriel_calibration::forget_power},
    {"keys_int8", &oriel_calibration::keys_int8},
    {"keys_int4", &oriel_calibration::keys_int4},
    {"values_int8", &oriel_calibration::values_int8},
    {"values_int4", &oriel_calibration::values_int4},
    {"kl_limit", &oriel_calibration::kl_limit},
    {"state_f16", &oriel_calibration::state_f16},
    {"state_int8", &oriel_calibration::state_int8},
};

struct LayerConstant {
  const char* name;
  double oriel_layer_calibration::*value;
};
constexpr LayerConstant kLayerConstants[] = {
    {"keys_int8", &oriel_layer_calibration::keys_int8},
    {"keys_int4", &oriel_layer_calibration::keys_int4},
    {"values_int8", &oriel_layer_calibration::values_int8},
    {"values_int4", &oriel_layer_calibration::values_int4},
};

/// Identifies a model file: size, and FNV-1a of the first and last MiB.
Json identity(const std::string& model_path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(fs::u8path(model_path), error);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(openRegularFile(model_path),
                                                             &std::fclose);
  if (error || file == nullptr) {
    return nullptr;  // loading it reports the reason
  }
  uint64_t hash = 0xcbf29ce484222325;
  std::string block(static_cast<size_t>(std::min(bytes, kHashedBytes)), '\0');
  for (const uint64_t at : {uint64_t{0}, bytes - block.size()}) {
    const bool begins = at == 0;
    const long offset = begins ? 0 : -static_cast<long>(block.size());
    if (std::fseek(file.get(), offset, begins ? SEEK_SET : SEEK_END) != 0 ||
        std::fread(block.data(), 1, block.size(), file.get()) != block.size()) {
      throw Failure{kExitFailed, "cannot read " + model_path + ": check its disk"};
    }
    for (const char c : block) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
  Json json;
  json["file_bytes"] = bytes;
  json["hash"] = text;
  return json;
}

}  // namespace

std::string sidecarPath(const std::string& model_path) { return model_path + ".calibration.json"; }

Json calibrationFields(const oriel_calibration& calibration) {
  Json json;
  for (const Constant& constant : kConstants) {
    const double value = calibration.*constant.value;
    json[constant.name] = value != 0 ? Json(value) : Json(nullptr);
  }
  return json;
}

Json layerFields(const std::vector<oriel_layer_calibration>& layers) {
  Json list = Json::array();
  for (const oriel_layer_calibration& layer : layers) {
    Json entry;
    for (const LayerConstant& constant : kLayerConstants) {
      entry[constant.name] = layer.*constant.value;
    }
    list.push_back(entry);
  }
  return list;
}

Json windowFields(const std::vector<MeasuredWindows>& windows) {
  Json list = Json::array();
  for (const MeasuredWindows& measured : windows) {
    Json entry;
    entry["window_tokens"] = measured.window_tokens;
    entry["loss_nats"] = measured.loss_nats;
    entry["shares"] = measured.shares;
    list.push_back(entry);
  }
  return list;
}

namespace {

[[noreturn]] void failWithAdvice(const Failure& failure) {
  throw Failure{failure.exit_code, failure.message + ", or name another file with --out"};
}

ResultFile open(const std::string& path) {
  try {
    return ResultFile(path);
  } catch (const Failure& failure) {
    failWithAdvice(failure);
  }
}

}  // namespace

SidecarFile::SidecarFile(const std::string& path, const std::string& model_path)
    : file_(open(path)), model_(identity(model_path)) {}

void SidecarFile::write(const Calibration& calibration, const Json& details) {
  Json json;
  json["format"] = "oriel calibration";
  json["version"] = kSidecarVersion;
  json["model"] = model_;
  json["constants"] = calibrationFields(calibration.constants);
  json["layers"] = layerFields(calibration.layers);
  json["windows"] = windowFields(calibration.windows);
  json["measured"] = details;
  try {
    file_.commit(json.dump(2) + "\n");
  } catch (const Failure& failure) {
    failWithAdvice(failure);
  }
}

}  // namespace cli
