#include <memory>
#include <string>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "command_line.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

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

namespace {

struct DoctorOptions {
  CommonOptions common;
  bool no_timing = false;
  bool forget = false;
  std::string report;
};

struct Findings {
  std::vector<oriel_check> checks;
  std::vector<oriel_candidate> candidates;
};

void onCheck(const oriel_check* check, void* user) {
  static_cast<Findings*>(user)->checks.push_back(*check);
}
void onCandidate(const oriel_candidate* candidate, void* user) {
  static_cast<Findings*>(user)->candidates.push_back(*candidate);
}

Json jsonOf(const oriel_self_test_result& result, const Findings& findings) {
  Json json;
  json["device"] = result.device;
  json["driver"] = result.driver;
  json["features"] = listOf(result.features);
  json["feature_names"] = listOf(result.feature_names);
  json["passed"] = result.passed;
  json["failed"] = result.failed;
  json["skipped"] = Json::array();
  json["checks"] = Json::array();
  for (const oriel_check& check : findings.checks) {
    const bool skipped = check.result == ORIEL_CHECK_SKIPPED;
    Json entry;
    entry["name"] = check.name;
    if (check.result != ORIEL_CHECK_PASSED) {
      entry["reason"] = check.reason;
    }
    if (!skipped) {
      entry["passed"] = check.result == ORIEL_CHECK_PASSED;
      entry["error"] = check.error;
      entry["limit"] = check.limit;
    }
    json[skipped ? "skipped" : "checks"].push_back(entry);
  }
  json["ops"] = Json::array();
  for (const oriel_candidate& candidate : findings.candidates) {
    Json& ops = json["ops"];
    if (ops.empty() || ops.back()["op"] != candidate.op) {
      Json op;
      op["op"] = candidate.op;
      op["candidates"] = Json::array();
      ops.push_back(op);
    }
    Json entry;
    entry["name"] = candidate.name;
    entry["microseconds"] = candidate.microseconds;
    ops.back()["candidates"].push_back(entry);
    if (candidate.chosen != 0) {
      ops.back()["chosen"] = candidate.name;
    }
    if (candidate.standard != 0) {
      ops.back()["standard"] = candidate.name;
    }
  }
  json["kept"] = result.candidates_kept != 0;
  return json;
}

std::string textOf(const oriel_self_test_result& result, const Findings& findings, bool all) {
  std::string text = oneLine(result.device) + " (" + oneLine(result.driver) + ")\n";
  if (result.features[0] != '\0') {
    text += std::string("in use: ") + result.features + "\n";
  }
  if (result.feature_names[0] != '\0') {
    text += std::string("ORIEL_DISABLE may name: ") + result.feature_names + ", all\n";
  }
  text += formatted("\n%u kernel checks passed, %u failed, %u skipped\n", result.passed,
                    result.failed, result.skipped);
  for (const oriel_check& check : findings.checks) {
    if (check.result == ORIEL_CHECK_PASSED) {
      text += all ? formatted("  ok       %s (off by %.1e of %.0e)\n", check.name, check.error,
                              check.limit)
                  : "";
    } else {
      text +=
          formatted("  %s  %s: %s\n", check.result == ORIEL_CHECK_FAILED ? "FAILED " : "skipped",
                    check.name, check.reason);
    }
  }
  std::string op;
  for (const oriel_candidate& candidate : findings.candidates) {
    if (op != candidate.op) {
      op = candidate.op;
      text += "\n" + op + "\n";
    }
    text += formatted("  %s %-38s %10.0f us%s\n", candidate.chosen != 0 ? "*" : " ", candidate.name,
                      candidate.microseconds,
                      candidate.standard != 0 ? "  (where nothing was measured)" : "");
  }
  if (!findings.candidates.empty()) {
    text += result.candidates_kept != 0
                ? "\n* is used from now on\n"
                : "\n* is fastest; not kept, because the cache folder is missing\n";
  }
  return text;
}

int forgetDrivers(const CommonOptions& options) {
  const Diagnostics diagnostics(options.verbose);
  const std::string cache = driverFolder(options);
  if (!cache.empty()) {
    CommonOptions given = options;
    given.load.set("cache_folder", cache);
    oriel::Options library_options = planOptions(given);
    diagnostics.listen(&library_options);
    Json devices;
    diagnostics.check(described(&devices, [&](char* text, size_t capacity, size_t* needed) {
      return oriel_device_describe(&library_options, ORIEL_DEVICE_FORGET, text, capacity, needed);
    }));
  }
  if (options.json) {
    Json json;
    json["folder"] = cache;
    printJson(json);
  } else {
    printText(cache.empty() ? "No records about drivers.\n"
                            : "Deleted the records about drivers.\n");
  }
  return kExitDone;
}

void writeReport(const DoctorOptions& options, oriel_status status, const Json& findings,
                 ResultFile* file) {
  Json report;
  report["oriel"] = oriel_version();
  report["status"] = oriel_status_text(status);
  report["devices"] = listDevices(options.common);
  report["doctor"] = findings;
  file->commit(report.dump(1) + "\n");
}

int runDoctor(const DoctorOptions& options) {
  if (options.forget) {
    return forgetDrivers(options.common);
  }
  catchInterrupts();
  // Created before the tests start, to find errors early.
  const auto report =
      options.report.empty() ? nullptr : std::make_unique<ResultFile>(options.report);
  Diagnostics diagnostics(options.common.verbose, true, "testing the device");
  CommonOptions given = options.common;
  if (const std::string cache = cacheFolder(given); !cache.empty()) {
    given.load.set("cache_folder", cache);
  }
  oriel::Options library_options = memoryOptions(given);
  diagnostics.listen(&library_options);
  diagnostics.watch(&library_options);
  oriel_self_test_result result = ORIEL_INIT(oriel_self_test_result);
  Findings findings;
  const oriel_status status = oriel_self_test(
      &library_options, onCheck, options.no_timing ? nullptr : onCandidate, &findings, &result);
  if (report != nullptr) {  // also for a device that fails
    writeReport(options, status, jsonOf(result, findings), report.get());
  }
  diagnostics.check(status, Diagnostics::Blame::kOptions);
  if (options.common.json) {
    printJson(jsonOf(result, findings));
  } else {
    printText(textOf(result, findings, options.common.verbose));
  }
  if (result.failed != 0) {
    throw Failure{kExitFailed,
                  formatted("%u kernel checks failed: update the driver of %s, or choose "
                            "another device",
                            result.failed, result.device)};
  }
  return kExitDone;
}

}  // namespace

Command addDoctorCommand(CLI::App* program) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* app =
      program->add_subcommand("doctor", "Test every kernel on a device, and keep the fastest");
  app->add_flag("--no-timing", options->no_timing, "Only test; time nothing");
  app->add_flag("--forget-drivers", options->forget,
                "Only delete the records about drivers: wrong kernels and crashes");
  app->add_option("--report", options->report,
                  "Also write limits, results and times to FILE, to mail with a bug report")
      ->type_name("FILE");
  addCommonOptions(app, &options->common, Uses::kDevice);
  return {app, [options] { return runDoctor(*options); }};
}

}  // namespace cli
