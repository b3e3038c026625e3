#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "sizes.h"
#include "system.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

std::vector<oriel_device_info> listDevices(const CommonOptions& common, Diagnostics* diagnostics) {
  const std::string cache = common.no_cache ? "" : userCacheFolder().u8string();
  oriel_options options = planOptions(common);
  options.cache_dir = cache.empty() ? nullptr : cache.c_str();
  options.disabled_features = nullptr;  // what there is, not what one does without
  options.log = Diagnostics::onLog;
  options.log_user = diagnostics;
  std::vector<oriel_device_info> devices(16);
  size_t needed = 0;
  for (;;) {
    for (oriel_device_info& device : devices) {
      device = {};
      device.struct_size = sizeof(device);
    }
    const oriel_status status =
        oriel_device_list_with(&options, devices.data(), devices.size(), &needed);
    const bool too_small = status == ORIEL_ERROR_BUFFER_TOO_SMALL && needed > devices.size();
    if (!too_small) {
      diagnostics->check(status);
    }
    devices.resize(needed);
    if (!too_small) {
      return devices;
    }
  }
}

int runDevices(const CommonOptions& options) {
  Diagnostics diagnostics(options.verbose);
  const std::vector<oriel_device_info> devices = listDevices(options, &diagnostics);
  Json list = Json::array();
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    const oriel_device_info& device = devices[i];
    const bool is_cpu = std::string(device.kind) == "cpu";
    const std::string option = is_cpu ? "cpu" : "vulkan:" + std::to_string(i);
    Json entry;
    entry["option"] = option;
    entry["name"] = device.name;
    entry["driver"] = device.driver;
    entry["kind"] = device.kind;
    entry["usable"] = device.usable != 0;
    entry["reason"] = device.reason;
    entry["features"] = listOf(device.features);
    entry["memory_bytes"] = device.memory_bytes;
    entry["faults"] = device.faults;
    entry["verdict"] = device.verdict;
    entry["kernels_right"] = device.kernels_right;
    entry["kernels_wrong"] = device.kernels_wrong;
    list.push_back(entry);

    const std::string gap(12, ' ');
    text.append(option).append(option.size() < 12 ? 12 - option.size() : 1, ' ');
    text.append(oneLine(device.name)).append("\n").append(gap).append(device.kind);
    text += device.driver[0] != '\0' ? ", " + oneLine(device.driver) : "";
    text += device.memory_bytes != 0 ? ", " + formatSize(device.memory_bytes) : "";
    text += "\n";
    if (device.usable == 0) {
      text += gap + "not usable: " + oneLine(device.reason) + "\n";
    } else if (device.features[0] != '\0') {
      text += gap + device.features + "\n";
    }
    if (device.faults[0] != '\0') {
      text += gap + "known faults: " + device.faults + "\n";
    }
    if (device.verdict[0] != '\0' && device.usable != 0) {
      text += gap + "found here: " + device.verdict + "\n";
    }
    if (device.kernels_right + device.kernels_wrong != 0) {
      text += gap + formatted("tested here: %u kernels right, %u wrong\n", device.kernels_right,
                              device.kernels_wrong);
    }
  }
  if (options.json) {
    Json json;
    json["devices"] = list;
    printJson(json);
  } else {
    printText(text);
  }
  return kExitDone;
}

}  // namespace

Command addDevicesCommand(CLI::App* program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = program->add_subcommand("devices", "List what a model could run on here");
  addCommonOptions(app, options.get(), Uses::kText);
  return {app, [options] { return runDevices(*options); }};
}

}  // namespace cli
