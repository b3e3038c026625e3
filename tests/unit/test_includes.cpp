// Tiers of tests: which tests run where, and marks without a test.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/tiers.h"

namespace oriel_internal::test::test_tiers {
namespace {

using Names = std::vector<std::string>;

const std::vector<TestPlace> kTests = {{"Turns.plain", "a.cpp", 10},
                                       {"Turns.on_the_cpu", "a.cpp", 20},
                                       {"Models/Logits.equal/f16", "a.cpp", 30},
                                       {"Models/Logits.equal/q8_0", "a.cpp", 30},
                                       {"Executor.layers", "b.cpp", 10},
                                       {"Executor.nightly", "b.cpp", 20}};
const std::vector<TierMark> kMarks = {{"a.cpp", 19, kCpu, {}},
                                      {"a.cpp", 28, kCpu, {}},
                                      {"a.cpp", 29, kEachDevice | kValidated, {"q8_0"}},
                                      {"b.cpp", 9, kEachGpu, {}},
                                      {"b.cpp", 19, kNightly, {}}};

Names at(uint32_t here, bool every_test = false) {
  const Tiers tiers = tiersOf(kTests, kMarks, here, kOneDevice, every_test);
  EXPECT_EQ(Names(), tiers.faults);
  return tiers.tests;
}
Names faultsOf(const std::vector<TierMark>& marks, uint32_t here = kOnFirstGpu) {
  return tiersOf(kTests, marks, here, kOneDevice, false).faults;
}

TEST(Tiers, give_each_device_its_tests) {
  EXPECT_EQ(Names({"Turns.plain", "Turns.on_the_cpu", "Models/Logits.equal/f16",
                   "Models/Logits.equal/q8_0"}),
            at(kOnCpu));
  EXPECT_EQ(Names({"Turns.plain", "Executor.layers"}), at(kOnFirstGpu));
  EXPECT_EQ(Names({"Models/Logits.equal/q8_0", "Executor.layers"}), at(kOnSecondGpu));
  EXPECT_EQ(Names({"Models/Logits.equal/q8_0"}), at(kOnValidatedGpu));
}

TEST(Tiers, run_validated_tests_without_the_layer_where_there_is_none) {
  EXPECT_EQ(Names({"Turns.plain", "Models/Logits.equal/q8_0", "Executor.layers"}),
            at(kOnFirstGpu | kOnValidatedGpu));
}

TEST(Tiers, are_all_run_on_request) {
  EXPECT_EQ(6u, at(kOnFirstGpu, true).size());
  EXPECT_EQ(6u, at(kOnSecondGpu, true).size());
  EXPECT_EQ(Names({"Turns.plain", "Turns.on_the_cpu", "Models/Logits.equal/f16",
                   "Models/Logits.equal/q8_0", "Executor.nightly"}),
            at(kOnCpu, true));
  EXPECT_EQ(Names({"Models/Logits.equal/f16", "Models/Logits.equal/q8_0"}),
            at(kOnValidatedGpu, true));
}

TEST(Tiers, of_a_file_are_for_its_tests_without_a_mark) {
  std::vector<TierMark> marks = kMarks;
  marks.push_back({"a.cpp", 0, kCpu, {}});
  EXPECT_EQ(Names({"Executor.layers"}),
            tiersOf(kTests, marks, kOnFirstGpu, kOneDevice, false).tests);
  EXPECT_EQ(at(kOnCpu), tiersOf(kTests, marks, kOnCpu, kOneDevice, false).tests);
  EXPECT_EQ(6u, tiersOf(kTests, marks, kOnFirstGpu, kOneDevice, true).tests.size());
  EXPECT_EQ(Names({"gone.cpp:0: no test follows RUNS_ON"}), faultsOf({{"gone.cpp", 0, kCpu, {}}}));
}

TEST(Tiers, of_a_file_may_be_those_of_a_case) {
  const std::vector<TierMark> marks = {{"a.cpp", 0, kNightly, {"f16"}}, {"a.cpp", 19, kCpu, {}}};
  EXPECT_EQ(
      Names({"Turns.plain", "Models/Logits.equal/q8_0", "Executor.layers", "Executor.nightly"}),
      tiersOf(kTests, marks, kOnFirstGpu, kOneDevice, false).tests);
  EXPECT_EQ(Names({"a.cpp:0: no case is called q9"}), faultsOf({{"a.cpp", 0, kNightly, {"q9"}}}));
}

TEST(Tiers, of_gpus_at_night_are_never_the_cpus) {
  std::vector<TierMark> marks = kMarks;
  marks.back().places = kNightlyGpu;
  EXPECT_EQ(at(kOnFirstGpu), tiersOf(kTests, marks, kOnFirstGpu, kOneDevice, false).tests);
  EXPECT_EQ(6u, tiersOf(kTests, marks, kOnSecondGpu, kOneDevice, true).tests.size());
  EXPECT_EQ(4u, tiersOf(kTests, marks, kOnCpu, kOneDevice, true).tests.size());
}

TEST(Tiers, that_match_nothing_are_faults) {
  EXPECT_EQ(Names({"a.cpp:31: no test follows RUNS_ON"}), faultsOf({{"a.cpp", 31, kCpu, {}}}));
  EXPECT_EQ(Names({"gone.cpp:1: no test follows RUNS_ON"}), faultsOf({{"gone.cpp", 1, kCpu, {}}}));
  EXPECT_EQ(Names({"a.cpp:29: no case is called q9"}),
            faultsOf({{"a.cpp", 29, kCpu, {"f16", "q9"}}}));
  EXPECT_EQ(Names({"no test has a tier that runs here"}), faultsOf({}, kOnSecondGpu));
}

}  // namespace
}  // namespace oriel_internal::test::test_tiers

// Tests the folder map: allowed includes (docs/design.md), and that documents name existing things.

namespace {

namespace fs = std::filesystem;

// An app's library (base to api, cpu, vulkan) never needs speed and tools, which are a separate library. Room -> rooms
// it may include from, besides itself and base.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"base", {}},
    {"os", {}},
    {"gguf", {"os"}},
    {"json", {"text"}},
    {"text", {"gguf"}},
    {"jinja", {"json", "text"}},
    {"grammar", {"json", "text"}},
    {"reply", {"json", "text", "grammar"}},
    {"chat", {"gguf", "json", "text", "jinja", "reply"}},
    {"model", {"gguf", "shaders"}},
    {"vision", {"gguf", "kv", "plan", "exec"}},
    {"kv", {"model", "shaders"}},
    {"plan", {"gguf", "model", "kv", "shaders"}},
    {"budget", {"gguf", "model", "kv", "plan"}},
    {"exec",
     {"os", "gguf", "model", "text", "json", "chat", "reply", "grammar", "kv", "plan", "shaders"}},
    {"speed", {"os", "gguf", "model", "kv", "plan", "budget", "exec"}},
    {"selftest", {"kv", "plan", "exec"}},
    {"options", {"json"}},
    {"api",
     {"os", "gguf", "model", "text", "json", "jinja", "chat", "reply", "grammar", "kv", "budget",
      "plan", "exec", "vision", "selftest", "options", "cpu", "vulkan"}},
    {"tools", {"kv", "json", "plan", "budget", "exec", "speed", "selftest", "api"}},
    {"cpu", {"os", "kv", "plan", "exec", "shaders"}},
    {"vulkan", {"os", "kv", "plan", "exec", "shaders"}},
};

// Rooms that use the structs of the C API. base has its statuses, log levels and allocator, which the others use.
const std::set<std::string> kOfTheAbi = {"base",    "text", "chat",  "exec",
                                         "options", "api",  "tools", "vulkan"};

std::string roomOf(const fs::path& file) { return file.parent_path().filename().string(); }

TEST(Includes, arrows_point_one_way) {
  const std::regex include("^\\s*#include \"([a-z0-9_]+)/.*\"");
  int files = 0;
  for (const std::string root : {"runtime", "platform"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ORIEL_SOURCE_DIR) / root)) {
      const fs::path& path = entry.path();
      const std::string room = roomOf(path);
      if ((path.extension() != ".h" && path.extension() != ".cpp") || room == "oriel") {
        continue;
      }
      ASSERT_EQ(1u, kArrows.count(room)) << path << " is in a room the map does not know";
      ++files;
      std::ifstream text(path);
      for (std::string line; std::getline(text, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) {
          continue;
        }
        const std::string target = match[1];
        EXPECT_TRUE(target == room || target == "base" ||
                    (target == "oriel" &&
                     (room == "base" || room == "options" || room == "api" || room == "tools")) ||
                    kArrows.at(room).count(target) == 1)
            << path << ": " << line;
      }
    }
  }
  EXPECT_GT(files, 30);
}

// Everything includes base, and base the header: so names count, not includes.
TEST(Includes, the_core_has_its_own_types_beside_those_of_the_c_api) {
  const std::regex comment("//.*");
  const std::regex name("\\b(oriel_[a-z0-9_]+|ORIEL_[A-Z0-9_]+)\\b");
  const std::regex of_base(
      "oriel_(status|allocator|log_level|log_fn)|ORIEL_(OK|TRY|PRINTF|ERROR_[A-Z_]+|LOG_[A-Z]+)");
  const std::regex of_vulkan("\\bVulkanApi\\b|\\bVk[A-Z]|\\bwrap_api\\b");
  std::string header;
  for (const char* const file : {"oriel.h", "advanced.h", "tools.h"}) {
    std::ifstream in(fs::path(ORIEL_SOURCE_DIR) / "runtime/include/oriel" / file);
    header.append(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  const std::set<std::string> public_names(
      std::sregex_token_iterator(header.begin(), header.end(), name), std::sregex_token_iterator());
  ASSERT_EQ(1u, public_names.count("oriel_options"));
  int lines = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(ORIEL_SOURCE_DIR) / "runtime")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".h" && path.extension() != ".cpp") {
      continue;
    }
    std::ifstream text(path);
    for (std::string line; std::getline(text, line); ++lines) {
      const char* const parts[] = {"oriel_", "ORIEL_", "VulkanApi", "Vk", "wrap_api"};
      if (std::none_of(std::begin(parts), std::end(parts),
                       [&](const char* part) { return line.find(part) != std::string::npos; })) {
        continue;  // far faster than the expressions
      }
      line = std::regex_replace(line, comment, "");
      const std::string room = roomOf(path);
      EXPECT_FALSE(room != "api" && room != "tools" && std::regex_search(line, of_vulkan))
          << path << ": " << line;
      if (room == "oriel" || kOfTheAbi.count(room) == 1) {
        continue;
      }
      for (std::sregex_iterator it(line.begin(), line.end(), name), end; it != end; ++it) {
        EXPECT_TRUE(public_names.count(it->str()) == 0 || std::regex_match(it->str(), of_base))
            << path << ": " << line;
      }
    }
  }
  EXPECT_GT(lines, 5000);
}

// Unity builds compile several tests as one file (ORIEL_UNITY), where helpers with equal names would clash.
TEST(Includes, a_test_file_has_namespaces_of_its_own) {
  const std::regex opening("^namespace (oriel.*) \\{");
  std::map<std::string, std::string> owners;
  for (const char* const folder : {"device", "fuzz", "golden", "unit"}) {
    for (const auto& entry :
         fs::directory_iterator(fs::path(ORIEL_SOURCE_DIR) / "tests" / folder)) {
      const std::string name = entry.path().stem().string();
      const bool has_names = name.rfind("test_", 0) == 0 || name.rfind("fuzz_", 0) == 0;
      if (!has_names || entry.path().extension() != ".cpp") {
        continue;
      }
      std::ifstream text(entry.path());
      for (std::string line; std::getline(text, line);) {
        std::smatch match;
        if (std::regex_search(line, match, opening)) {
          const std::string space = match[1];
          const std::regex own("::(test|fuzz)_[a-z0-9_]+$");
          EXPECT_TRUE(std::regex_search(space, own)) << entry.path() << ": " << line;
          EXPECT_TRUE(owners.emplace(space, name).first->second == name)
              << entry.path() << ": " << line;
        }
      }
    }
  }
  EXPECT_GT(owners.size(), 150u);
}

// docs/devices.md: all code for a new operating system is in one room.
TEST(Includes, of_the_core_only_os_asks_the_operating_system) {
  const std::regex system(
      "^\\s*#include <((windows|unistd|fcntl|pthread|dlfcn|sched)\\.h|(sys|mach|linux)/.*)>");
  int asking = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(ORIEL_SOURCE_DIR) / "runtime")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".h" && path.extension() != ".cpp") {
      continue;
    }
    std::ifstream text(path);
    for (std::string line; std::getline(text, line);) {
      if (std::regex_search(line, system)) {
        EXPECT_EQ("os", roomOf(path)) << path << ": " << line;
        ++asking;
      }
    }
  }
  EXPECT_GT(asking, 5);
}

TEST(Includes, apps_see_the_public_headers_only) {
  const std::regex include("^\\s*#include \"([a-z0-9_]+)/.*\"");
  const fs::path apps = fs::path(ORIEL_SOURCE_DIR) / "apps";
  for (const auto& entry : fs::recursive_directory_iterator(apps)) {
    std::ifstream text(entry.path());
    for (std::string line; std::getline(text, line);) {
      std::smatch match;
      if (std::regex_search(line, match, include)) {
        // The program's own rooms, rooms shared by `oriel` and the window, or installed headers.
        const std::string room = match[1];
        const fs::path program = *entry.path().lexically_relative(apps).begin();
        EXPECT_TRUE(room == "oriel" || fs::is_directory(apps / program / room) ||
                    (program == "desktop" && fs::is_directory(apps / "oriel" / room)))
            << entry.path() << ": " << line;
      }
    }
  }
}

// Bindings that are not built on every system must not name removed parts of the header.
TEST(Includes, integrations_name_only_what_the_public_header_has) {
  const fs::path root = ORIEL_SOURCE_DIR;
  const std::regex name("\\b(oriel_[a-z0-9_]+|ORIEL_[A-Z0-9_]+)\\b");
  const auto namesIn = [&](const fs::path& file) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return std::set<std::string>(std::sregex_token_iterator(text.begin(), text.end(), name),
                                 std::sregex_token_iterator());
  };
  std::set<std::string> known = namesIn(root / "runtime/include/oriel/oriel.h");
  known.merge(namesIn(root / "runtime/include/oriel/advanced.h"));
  known.insert("oriel_jni");  // the library's own name
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "integrations")) {
    const std::string extension = entry.path().extension().string();
    if (std::set<std::string>{".swift", ".cpp", ".h", ".java", ".kt"}.count(extension) == 0 ||
        roomOf(entry.path()) == "options") {  // which reads the library's table
      continue;
    }
    ++files;
    for (const std::string& used : namesIn(entry.path())) {
      EXPECT_EQ(1u, known.count(used)) << entry.path() << ": " << used;
    }
  }
  EXPECT_GT(files, 10);
}

#ifndef _WIN32
TEST(Documents, programs_that_they_name_are_there_and_can_be_started) {
  const fs::path root = ORIEL_SOURCE_DIR;
  std::vector<fs::path> documents = {root / "README.md", root / "CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") {
      documents.push_back(entry.path());
    }
  }
  const std::regex named("(scripts|tests/device)/[a-z_]+\\.(sh|py)");
  std::set<std::string> programs;
  for (const fs::path& document : documents) {
    std::ifstream file(document);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator it(text.begin(), text.end(), named), end; it != end; ++it) {
      programs.insert(it->str());
    }
  }
  EXPECT_GT(programs.size(), 6u);
  for (const std::string& program : programs) {
    const fs::path path = root / program;
    ASSERT_TRUE(fs::exists(path)) << program;
    EXPECT_NE(fs::perms::none, fs::status(path).permissions() & fs::perms::owner_exec) << program;
  }
}
#endif

}  // namespace
