#include <memory>
#include <string>

#include <oriel/advanced.h>
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

Json listDevices(const CommonOptions& common) {
  const Diagnostics diagnostics(common.verbose);
  CommonOptions given = common;
  given.load.set("disable_features", "");  // lists all features, including disabled ones
  if (const std::string cache = driverFolder(common); !cache.empty()) {
    given.load.set("cache_folder", cache);
  }
  oriel::Options options = planOptions(given);
  diagnostics.listen(&options);
  Json list;
  diagnostics.check(described(&list, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_device_describe(&options, 0, text, capacity, needed);
  }));
  return list["devices"];
}

namespace {

int runDevices(const CommonOptions& options) {
  Json list = Json::array();
  std::string text;
  for (const Json& device : listDevices(options)) {
    const std::string option =
        device["kind"] == "cpu" ? "cpu" : "vulkan:" + std::to_string(list.size());
    Json entry;
    entry["option"] = option;
    entry.update(device);
    entry["features"] = listOf(device["features"]);
    list.push_back(entry);

    const std::string gap(12, ' ');
    const auto line = [&](const char* before, const char* field) {
      const std::string value = oneLine(textIn(device, field));
      text += value.empty() ? "" : gap + before + value + "\n";
    };
    const std::string driver = textIn(device, "driver");
    const uint64_t memory = numberIn(device, "memory_bytes");
    text.append(option).append(option.size() < 12 ? 12 - option.size() : 1, ' ');
    text += oneLine(textIn(device, "name")) + "\n" + gap + textIn(device, "kind");
    text += driver.empty() ? "" : ", " + oneLine(driver);
    text += memory != 0 ? ", " + formatSize(memory) : "";
    text += "\n";
    const bool usable = device["usable"].get<bool>();
    usable ? line("", "features") : line("not usable: ", "reason");
    line("known faults: ", "faults");
    if (usable) {
      line("found here: ", "verdict");
    }
    if (numberIn(device, "kernels_right") + numberIn(device, "kernels_wrong") != 0) {
      text += gap + "tested here: " + device["kernels_right"].dump() + " kernels right, " +
              device["kernels_wrong"].dump() + " wrong\n";
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
  CLI::App* app = program->add_subcommand("devices", "List the devices of this machine");
  addCommonOptions(app, options.get(), Uses::kText);
  return {app, [options] { return runDevices(*options); }};
}

}  // namespace cli
