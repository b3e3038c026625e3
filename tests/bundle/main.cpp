// Tests one device through the public API only and writes the results as JSON.
//
//   oriel_device_test --list
//   oriel_device_test --device cpu|vulkan:N [--data FOLDER] [--out FILE] [--no-bench] [--only WHAT]
//                     [--disable NAMES]
//
// --list prints the devices as JSON. --only takes a group, or models/ and the start of a name; --disable names
// optional Vulkan features to disable. Exit codes: 0 all passed, 1 something failed, 2 wrong usage.
// One process tests one device, so that a crashing driver affects nothing else; the last printed line
// names the current check.
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>

#include "apps/oriel/system.h"
#include "bundle/checks.h"

namespace oriel_internal::bundle {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  bool list = false;
  bool bench = true;
  std::string device = "cpu";
  std::string data;
  std::string out;
  std::string only;
  std::string disabled;
};

struct WrongUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Arguments parse(const std::vector<std::string>& texts) {
  const WrongUsage usage(
      "usage: const char* --list | --device cpu|vulkan:N [--data FOLDER] [--out FILE] "
      "[--no-bench] "
      "[--only WHAT] [--disable NAMES]");
  Arguments arguments;
  arguments.data = cli::executablePath().parent_path().u8string();
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& argument = texts[i];
    if (argument == "--list") {
      arguments.list = true;
    } else if (argument == "--no-bench") {
      arguments.bench = false;
    } else if (i + 1 == texts.size()) {
      throw usage;
    } else if (argument == "--device") {
      arguments.device = texts[++i];
    } else if (argument == "--data") {
      arguments.data = texts[++i];
    } else if (argument == "--out") {
      arguments.out = texts[++i];
    } else if (argument == "--only") {
      arguments.only = texts[++i];
    } else if (argument == "--disable") {
      arguments.disabled = texts[++i];
    } else {
      throw usage;
    }
  }
  return arguments;
}

Json system() {
#if defined(__ANDROID__)
  const char* os = "Android";
#elif defined(_WIN32)
  const char* os = "Windows";
#elif defined(__APPLE__)
  const char* os = "Apple";
#else
  const char* os = "Linux";
#endif
#if defined(__aarch64__)
  const char* processor = "aarch64";
#elif defined(__arm__)
  const char* processor = "arm";
#elif defined(__x86_64__)
  const char* processor = "x86-64";
#elif defined(__riscv)
  const char* processor = "riscv";
#else
  const char* processor = "other";
#endif
  return {{"os", os}, {"processor", processor}, {"pointer_bits", 8 * sizeof(void*)}};
}

Json listAsJson() {
  std::vector<char> text(1 << 16);
  size_t needed = 0;
  require(oriel_device_describe(nullptr, 0, text.data(), text.size(), &needed), "listing devices");
  Json list = Json::array();
  const Json described = Json::parse(text.data());
  for (const Json& device : described["devices"]) {
    Json entry = {{"option", device["kind"] == "cpu" ? std::string("cpu")
                                                     : "vulkan:" + std::to_string(list.size())}};
    for (const char* name :
         {"name", "driver", "kind", "usable", "reason", "features", "memory_bytes"}) {
      entry[name] = device.at(name);
    }
    list.push_back(entry);
  }
  return list;
}

/// Throws if no listed device has this name.
Json chooseDevice(const std::string& option, Device* device) {
  for (const Json& entry : listAsJson()) {
    if (entry["option"] == option) {
      device->option = option;
      return entry;
    }
  }
  throw WrongUsage("there is no device " + option + ": see --list");
}

void checkOnly(const Device& device) {
  static const std::set<std::string> groups = {"", "kernels", "models", "streaming", "faults"};
  const bool one_model = device.only.rfind("models/", 0) == 0;
  if (one_model ? !namesModel(device) : groups.count(device.only) == 0) {
    throw WrongUsage("nothing is called " + device.only +
                     ": kernels, models, streaming, faults or models/NAME");
  }
}

/// The library checks the names with all other options, for any model.
void checkDisabled(const Device& device) {
  const Options options = device.options();
  size_t needed = 0;
  if (oriel_shape_describe("llama-3.2-1b", &options, nullptr, 0, &needed) == ORIEL_ERROR_ARGUMENT) {
    throw WrongUsage(lastError());
  }
}

/// An exception in a group is a failed check; the other groups still run.
template <typename Group>
void runGroup(const Device& device, const std::string& name, CheckList* list, const Group& group) {
  if (!device.wants(name)) {
    return;
  }
  try {
    group();
  } catch (const std::exception& error) {
    list->begin(name, "the rest");
    list->end(false, error.what());
  }
}

/// A private folder in the system's temporary folder, removed with its contents.
class Scratch {
 public:
  Scratch() {
    std::random_device random;
    path_ = fs::temp_directory_path() / ("oriel-device-test-" + std::to_string(random()));
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  std::string path() const { return path_.u8string(); }

 private:
  fs::path path_;
};

/// Text from drivers may be invalid UTF-8.
std::string textOf(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

void writeResult(const Json& result, const std::string& path) {
  std::ofstream out(fs::u8path(path), std::ios::binary);
  out << textOf(result, 1);
  out.close();
  if (!out) {
    throw std::runtime_error("cannot write " + path);
  }
}

int run(const Arguments& arguments) {
  Device device;
  device.data = arguments.data;
  device.only = arguments.only;
  device.disabled = arguments.disabled;
  checkDisabled(device);
  if (arguments.list) {
    std::fputs(textOf(listAsJson(), -1).c_str(), stdout);
    return 0;
  }
  checkOnly(device);
  const Scratch scratch;
  device.scratch = scratch.path();
  Json result = {{"oriel", oriel_version()}, {"system", system()}};
  result["device"] = chooseDevice(arguments.device, &device);
  CheckList list;
  Json candidates = Json::array();
  runGroup(device, "kernels", &list,
           [&] { candidates = checkKernels(device, arguments.bench, &list); });
  runGroup(device, "models", &list, [&] { checkModels(device, &list); });
  runGroup(device, "streaming", &list, [&] { checkStreaming(device, &list); });
  runGroup(device, "faults", &list, [&] { checkFaults(device, &list); });
  if (arguments.bench) {
    try {
      result["figures"] = measure(device);
    } catch (const std::exception& error) {
      list.begin("figures", "measuring");
      list.end(false, error.what());
    }
    result["candidates"] = candidates;
  }
  result["peak_resident_bytes"] = cli::peakResidentBytes();
  result["passed"] = list.passed();
  result["failed"] = list.failed();
  result["skipped"] = list.skipped();
  result["checks"] = list.results();
  if (!arguments.out.empty()) {
    writeResult(result, arguments.out);
  }
  std::printf("%d passed, %d failed, %d skipped\n", list.passed(), list.failed(), list.skipped());
  return list.failed() == 0 && list.passed() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace oriel_internal::bundle

int main(int argc, char** argv) {
  using namespace oriel_internal::bundle;
  const auto failed = [](const std::exception& error, int code) {
    std::fprintf(stderr, "oriel_device_test: %s\n", error.what());
    return code;
  };
  try {
    return run(parse(cli::arguments(argc, argv)));
  } catch (const WrongUsage& error) {
    return failed(error, 2);
  } catch (const std::exception& error) {
    return failed(error, 1);
  }
}
