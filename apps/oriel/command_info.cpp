#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "sizes.h"
#include "terminal.h"

namespace cli {
namespace {

/// "Q8_0 x 43, F32 x 13" as an object of counts.
Json tensorTypes(const std::string& text) {
  Json types = Json::object();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(", ", begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t times = part.find(" x ");
    if (times != std::string::npos) {
      types[part.substr(0, times)] = std::strtoull(part.c_str() + times + 3, nullptr, 10);
    }
    begin = end + 2;
  }
  return types;
}

/// The least memory a session with this file can run in.
uint64_t minimumBytes(const CommonOptions& options) {
  Diagnostics diagnostics(options.verbose);
  oriel_options plan_options = planOptions(options);
  plan_options.min_tokens_per_s = 0;
  plan_options.log = Diagnostics::onLog;
  plan_options.log_user = &diagnostics;
  return planFile(modelPath(options), plan_options, diagnostics).minimum_bytes;
}

void describe(const Model& model, uint64_t minimum_bytes) {
  const oriel_model_info& info = model.info();
  char text[2048];
  std::snprintf(text, sizeof(text),
                "name           %s\n"
                "architecture   %s: %u layers of %u, %u heads and %u KV heads of %u, FFN %u\n"
                "parameters     %.2f million\n"
                "tensors        %s\n"
                "trained on     %u tokens\n"
                "tokenizer      %s, %u tokens\n"
                "chat format    %s\n"
                "file           %s\n"
                "least memory   %s\n",
                terminalSafe(info.name).c_str(), terminalSafe(info.architecture).c_str(),
                info.n_layers, info.n_embd, info.n_heads, info.n_kv_heads, info.head_dim, info.n_ff,
                static_cast<double>(info.parameters) / 1e6, info.tensor_types, info.context_train,
                terminalSafe(info.tokenizer).c_str(), info.n_vocab, info.chat_template,
                formatSize(info.file_bytes).c_str(), formatSize(minimum_bytes).c_str());
  print(text);
}

int runInfo(const CommonOptions& options) {
  const Model model(options, Load::kText);
  const uint64_t minimum_bytes = minimumBytes(options);
  if (!options.json) {
    describe(model, minimum_bytes);
    return kExitDone;
  }
  const oriel_model_info& info = model.info();
  Json json;
  json["name"] = info.name;
  json["architecture"] = info.architecture;
  json["n_layers"] = info.n_layers;
  json["n_heads"] = info.n_heads;
  json["n_kv_heads"] = info.n_kv_heads;
  json["head_dim"] = info.head_dim;
  json["n_embd"] = info.n_embd;
  json["n_ff"] = info.n_ff;
  json["n_vocab"] = info.n_vocab;
  json["context_train"] = info.context_train;
  json["parameters"] = info.parameters;
  json["file_bytes"] = info.file_bytes;
  json["tensor_types"] = tensorTypes(info.tensor_types);
  json["tokenizer"] = info.tokenizer;
  json["chat_template"] = info.chat_template;
  json["bos_id"] = info.bos_id < 0 ? Json(nullptr) : Json(info.bos_id);
  json["eos_id"] = info.eos_id < 0 ? Json(nullptr) : Json(info.eos_id);
  json["add_bos"] = info.add_bos != 0;
  json["minimum_bytes"] = minimum_bytes;
  printJson(json);
  return kExitDone;
}

}  // namespace

Command addInfoCommand(CLI::App* program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = program->add_subcommand("info", "What is in a model file");
  addModelOption(app, options.get());
  addCommonOptions(app, options.get(), Uses::kText);
  return {app, [options] { return runInfo(*options); }};
}

}  // namespace cli
