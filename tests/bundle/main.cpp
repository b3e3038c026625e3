// Tests one device through the public API alone and writes what it found as JSON.
//
//   oriel_device_test --list
//   oriel_device_test --device cpu|vulkan:N [--data FOLDER] [--out FILE] [--no-bench] [--only WHAT]
//
// --list prints the devices as JSON. --only takes a group, or models/ and how the name begins. Exit codes: 0 all passed, 1 something failed, 2 wrong usage.
// One process tests one device, so that a driver which crashes takes nothing else with it; the line
// printed last names the check it was in.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "apps/oriel/system.h"
#include "bundle/checks.h"

namespace oriel::bundle {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  bool list = false;
  bool bench = true;
  std::string device = "cpu";
  std::string data;
  std::string out;
  std::string only;
};

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: oriel_device_test --list | --device cpu|vulkan:N [--data FOLDER] "
               "[--out FILE] [--no-bench] [--only WHAT]\n");
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  arguments.data = cli::executablePath().parent_path().u8string();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--list") {
      arguments.list = true;
    } else if (argument == "--no-bench") {
      arguments.bench = false;
    } else if (i + 1 == argc) {
      usage();
    } else if (argument == "--device") {
      arguments.device = argv[++i];
    } else if (argument == "--data") {
      arguments.data = argv[++i];
    } else if (argument == "--out") {
      arguments.out = argv[++i];
    } else if (argument == "--only") {
      arguments.only = argv[++i];
    } else {
      usage();
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

std::vector<oriel_device_info> listDevices() {
  std::vector<oriel_device_info> devices(32);
  for (oriel_device_info& device : devices) {
    device = {};
    device.struct_size = sizeof(device);
  }
  size_t needed = 0;
  require(oriel_device_list(nullptr, nullptr, devices.data(), devices.size(), &needed),
          "listing devices");
  devices.resize(needed);
  return devices;
}

Json describe(const oriel_device_info& info, size_t index) {
  const bool is_cpu = std::strcmp(info.kind, "cpu") == 0;
  return {{"option", is_cpu ? "cpu" : "vulkan:" + std::to_string(index)},
          {"name", info.name},
          {"driver", info.driver},
          {"kind", info.kind},
          {"usable", info.usable != 0},
          {"reason", info.reason},
          {"features", info.features},
          {"memory_bytes", info.memory_bytes}};
}

Json listAsJson() {
  Json list = Json::array();
  const std::vector<oriel_device_info> devices = listDevices();
  for (size_t i = 0; i < devices.size(); ++i) {
    list.push_back(describe(devices[i], i));
  }
  return list;
}

/// Throws when no device of the list has this name.
Json chooseDevice(const std::string& option, Device* device) {
  for (const Json& entry : listAsJson()) {
    if (entry["option"] == option) {
      if (option != "cpu") {
        device->kind = ORIEL_DEVICE_VULKAN;
        device->number = 1 + static_cast<uint32_t>(std::stoul(option.substr(7)));
      }
      return entry;
    }
  }
  throw std::runtime_error("there is no device " + option + ": see --list");
}

/// A folder of this run's own below the system's, removed with its contents.
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
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

int run(const Arguments& arguments) {
  if (arguments.list) {
    std::printf("%s\n", listAsJson().dump().c_str());
    return 0;
  }
  const Scratch scratch;
  Device device;
  device.data = arguments.data;
  device.scratch = scratch.path();
  device.only = arguments.only;
  Json result = {{"oriel", oriel_version()}, {"system", system()}};
  result["device"] = chooseDevice(arguments.device, &device);
  CheckList list;
  Json candidates = Json::array();
  if (device.wants("kernels")) {
    candidates = checkKernels(device, arguments.bench, &list);
  }
  if (device.wants("models")) {
    checkModels(device, &list);
  }
  if (device.wants("streaming")) {
    checkStreaming(device, &list);
  }
  if (device.wants("faults")) {
    checkFaults(device, &list);
  }
  if (arguments.bench) {
    try {
      result["figures"] = measure(device);
    } catch (const std::exception& error) {
      list.begin("figures", "measuring");
      list.end(false, error.what());
    }
  }
  if (arguments.bench) {
    result["candidates"] = candidates;
  }
  result["peak_resident_bytes"] = cli::peakResidentBytes();
  result["passed"] = list.passed();
  result["failed"] = list.failed();
  result["skipped"] = list.skipped();
  result["checks"] = list.results();
  if (!arguments.out.empty()) {
    std::ofstream out(fs::u8path(arguments.out));
    if (!(out << result.dump(1) << "\n")) {
      throw std::runtime_error("cannot write " + arguments.out);
    }
  }
  std::printf("%d passed, %d failed, %d skipped\n", list.passed(), list.failed(), list.skipped());
  return list.failed() == 0 && list.passed() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace oriel::bundle

int main(int argc, char** argv) {
  try {
    return oriel::bundle::run(oriel::bundle::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oriel_device_test: %s\n", error.what());
    return 1;
  }
}
