// Makes mutants of valid models, and runs an app with one. Started by hostile.py.
//
//   oriel_hostile_models make SEED           for each line "NUMBER PATH" on stdin writes that mutant; a line on
//                                            stdout gives its model and the mutation
//   oriel_hostile_models sound NUMBER PATH   writes a model without mutation
//   oriel_hostile_models use CHOICES PATH    plans, loads and talks as in tests/fuzz/fuzz.h
//   oriel_hostile_models live ROUNDS PATH FOLDER
//                                            keeps weights on file, talks, saves and restores FOLDER/kept.session,
//                                            and gives its memory back to FOLDER and takes it again
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "fuzz/gguf_parts.h"
#include "fuzz/use_model.h"
#include "oriel/advanced.h"
#include "support/files.h"
#include "support/model_mutants.h"
#include "support/options.h"
#include "support/random_families.h"

namespace oriel_internal::fuzz {

// Inputs of fuzzers are not made here.
size_t mutateBytes(uint8_t*, size_t size, size_t, uint64_t) { return size; }

}  // namespace oriel_internal::fuzz

namespace oriel_internal::test {
namespace {

namespace fs = std::filesystem;

struct Sound {
  std::string name;
  std::vector<uint8_t> bytes;
};

std::vector<uint8_t> readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool writeFile(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return out.flush().good();
}

/// Dense, expert, latent and recurrent models, with many types; and published shapes if available.
std::vector<Sound> soundModels() {
  std::vector<Sound> sound;
  const auto take = [&sound](const std::string& path) {
    if (std::vector<uint8_t> bytes = readFile(path); !bytes.empty()) {
      sound.push_back({fs::path(path).stem().string(), std::move(bytes)});
    }
  };
  take(ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf");
  for (const char* name :
       {"llama-q2_k", "llama-iq4_nl", "llama-q4_k_m", "llama-q5_1", "llama-q8_0", "gemma3",
        "gemma4-e-q8_0", "qwen3", "phi3", "smollm3", "llama3-rope", "granite-nope",
        "minicpm-nokeys", "ernie4_5", "olmo3", "lfm2-q8_0", "lfm2-q4_0", "lfm2moe-q4_0"}) {
    take(test::dataFile(std::string("models/") + name + ".gguf"));
  }
  for (const char* name :
       {"deepseek2", "deepseek2-lite", "minicpm3", "falcon-h1", "granitehybrid-moe", "qwen35-q8_0",
        "granitemoe-q4_0", "olmoe-q4_0", "qwen3moe-q8_0", "stories260K", "exaone4-swa"}) {
    take(test::dataFile(std::string("models/") + name + ".gguf"));
  }
  for (const RandomFamily& family : randomFamilies()) {
    if (family.model.state.heads != 0 || family.model.n_experts != 0 ||
        family.model.latent_dim != 0) {
      sound.push_back({family.name, family.model.bytes()});
    }
  }
  return sound;
}

// Mutates the header like the fuzzers, with the weights unchanged.
std::vector<uint8_t> mutateHeader(const std::vector<uint8_t>& sound, uint64_t number,
                                  std::string* what) {
  fuzz::Chance chance(number);
  fuzz::GgufParts parts = fuzz::takeGgufApart(sound.data(), sound.size());
  const uint64_t changes = 1 + chance.below(3);
  for (uint64_t i = 0; i < changes; ++i) {
    constexpr fuzz::Care kCares[] = {fuzz::Care::kModel, fuzz::Care::kModel, fuzz::Care::kTokenizer,
                                     fuzz::Care::kAnything};
    fuzz::mutateGguf(&parts, chance.anyOf(kCares), &chance);
  }
  if (chance.once(12)) {  // near the largest size that is accepted, and far above
    const std::string own = parts.textOf("tokenizer.chat_template");
    const std::string part =
        chance.once(2) || own.empty() ? "{{ messages[0].content }} tool " : own;
    const uint64_t bytes =
        chance.once(2) ? (256 << 10) - 2 + chance.below(5) : chance.below(8 << 20);
    std::string text;
    while (text.size() < bytes) {
      text += part;
    }
    fuzz::setText("tokenizer.chat_template", text.substr(0, bytes), &parts);
  }
  *what = std::to_string(changes) + " changes of the header";
  return fuzz::putTogether(parts);
}

std::vector<uint8_t> makeMutant(const std::vector<uint8_t>& sound, uint64_t number,
                                std::string* what) {
  if (number % 2 == 0) {
    return mutateHeader(sound, number, what);
  }
  return ModelMutator(takeApart(sound), number).make(what);
}

int make(uint64_t seed) {
  const std::vector<Sound> sound = soundModels();
  std::string line;
  while (std::getline(std::cin, line)) {
    char* end = nullptr;
    const uint64_t number = std::strtoull(line.c_str(), &end, 10);
    if (*end != ' ') {
      return 2;
    }
    // the second kind of mutant has odd numbers
    const Sound& model = sound[number / 2 % sound.size()];
    std::string what;
    if (!writeFile(end + 1, makeMutant(model.bytes, seed << 32 | number, &what))) {
      return 1;
    }
    for (char& c : what) {
      c = c >= ' ' && c <= '~' ? c : '?';
    }
    std::printf("%s: %s\n", model.name.c_str(), what.substr(0, 300).c_str());
    std::fflush(stdout);
  }
  return 0;
}

int use(uint32_t choices, const char* path) {
  std::error_code ignored;
  const uint64_t bytes = fs::file_size(path, ignored);
  const oriel_status status = fuzz::useModel(path, bytes, choices);
  bool fits = false;
  (void)fuzz::planModel(path, bytes, choices, &fits);
  std::printf("%s\n", oriel_status_text(status));
  return testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

// An app whose files are written meanwhile. Every error must be one line.
void live(uint64_t rounds, const char* path, const std::string& folder) {
  fuzz::Watch watch;
  Options options;
  options.memory_bytes = 64u << 20;
  options.window_tokens = 100;
  options.device = "cpu";
  options.threads = 1;
  options.set("offload", "all");
  options.set("transcript", 4096);
  const Log log = watch.log();
  options.log = log.callback;
  options.log_user = log.user;
  options.allocator = watch.allocator();
  const std::string kept = folder + "/kept.session";
  for (uint64_t round = 0; round < rounds; ++round) {
    oriel_model* loaded = nullptr;
    (void)watch.ended(oriel_model_load(path, &options, &loaded));
    const ModelPtr model(loaded);
    oriel_session* made = nullptr;
    if (!model || watch.ended(oriel_session_create(loaded, nullptr, &made)) != ORIEL_OK) {
      continue;
    }
    const SessionPtr session(made);
    for (const oriel_trim_level level : {ORIEL_TRIM_CACHE, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_ALL}) {
      const ReplyOptions reply = greedyOptions(6);
      if (watch.ended(oriel_chat_add(made, "user", "Where is it?", 12)) == ORIEL_OK) {
        (void)watch.ended(oriel_chat_reply(made, &reply, nullptr, nullptr, nullptr));
      }
      (void)watch.ended(oriel_session_save(made, kept.c_str(), 0));
      const bool to_file = level == ORIEL_TRIM_CACHE;
      if (watch.ended(oriel_trim(loaded, level, to_file ? folder.c_str() : nullptr)) == ORIEL_OK &&
          watch.ended(oriel_resume(loaded, nullptr, nullptr)) != ORIEL_OK) {
        break;  // it stays trimmed
      }
      (void)watch.ended(oriel_session_restore(made, kept.c_str(), 0, nullptr));
    }
  }
  watch.expectPeakBelow(options.memory_bytes + 2 * (8 << 20));
}

}  // namespace
}  // namespace oriel_internal::test

int main(int argc, char** argv) {
  using namespace oriel_internal::test;
  int none = 1;
  testing::InitGoogleTest(&none, argv);
  const std::string what = argc > 2 ? argv[1] : "";
  const uint64_t number = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (what == "make" && argc == 3) {
    return make(number);
  }
  if (what == "sound" && argc == 4) {
    const std::vector<Sound> sound = soundModels();
    return writeFile(argv[3], sound[number % sound.size()].bytes) ? 0 : 1;
  }
  if (what == "use" && argc == 4) {
    return use(static_cast<uint32_t>(number), argv[3]);
  }
  if (what == "live" && argc == 5) {
    live(number, argv[3], argv[4]);
    return testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
  }
  std::fprintf(stderr,
               "usage: oriel_hostile_models make SEED | sound NUMBER PATH | use CHOICES PATH |"
               " live ROUNDS PATH FOLDER\n");
  return 2;
}
