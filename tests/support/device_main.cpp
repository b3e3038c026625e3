// Runs the device tests on one device, ORIEL_TEST_TARGET (a compile definition, one program each):
//   cpu               the CPU executor; kernels on the reference executor, too
//   vulkan=ICD        the Vulkan driver with this ICD json, and no other
//   validation=ICD    the same under the Khronos validation layer with synchronisation validation; any
//                     message fails the run
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "support/target.h"

namespace {

bool takePrefix(std::string* text, const std::string& prefix) {
  if (text->compare(0, prefix.size(), prefix) != 0) {
    return false;
  }
  text->erase(0, prefix.size());
  return true;
}

void useDriver(const std::string& icd) {
  setenv("VK_ICD_FILENAMES", icd.c_str(), 1);
  setenv("VK_DRIVER_FILES", icd.c_str(), 1);
}

// A folder for the layer's settings and log, removed at the end.
class ValidationLog {
 public:
  ValidationLog() {
    char folder[] = "/tmp/oriel-validation-XXXXXX";
    folder_ = mkdtemp(folder);
    std::ofstream settings(folder_ + "/vk_layer_settings.txt");
    settings << "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
             << "khronos_validation.report_flags = error,warn,perf\n"
             << "khronos_validation.log_filename = " << path() << "\n"
             << "khronos_validation.enables = "
                "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n";
    setenv("VK_LAYER_SETTINGS_PATH", folder_.c_str(), 1);
    setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation", 1);
  }
  ~ValidationLog() {
    unlink(path().c_str());
    unlink((folder_ + "/vk_layer_settings.txt").c_str());
    rmdir(folder_.c_str());
  }
  std::string messages() const {
    std::ifstream log(path());
    return std::string(std::istreambuf_iterator<char>(log), {});
  }

 private:
  std::string path() const { return folder_ + "/messages.txt"; }
  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string target = ORIEL_TEST_TARGET;
  std::optional<ValidationLog> validation;
  if (takePrefix(&target, "validation=")) {
    validation.emplace();
    target = "vulkan=" + target;
  }
  if (takePrefix(&target, "vulkan=")) {
    useDriver(target);
    oriel::test::setTargetDevice(ORIEL_DEVICE_VULKAN);
  }
  // Which tests there are depends on the target: only now may they be registered.
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (validation && !validation->messages().empty()) {
    std::cerr << "the validation layer said:\n" << validation->messages();
    return 1;
  }
  return result;
}
