#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <oriel/sessions.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "kv_formats.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "plan/layer_groups.h"
#include "plan/plan_source.h"
#include "report.h"
#include "sizes.h"
#include "system.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

/// A window that most conversations never fill.
constexpr uint32_t kComfortableTokens = 8192;
/// Where values begin.
constexpr size_t kIndent = 15;

struct FileReport {
  std::string path;
  oriel_file_info info = {};
  oriel_plan here = {};  ///< with --memory, or what a load takes by default; only of files that run
  oriel_plan comfortable = {};  ///< total_bytes 0: cannot be planned
};

FileReport inspect(const CommonOptions& options) {
  const Diagnostics diagnostics(options.verbose);
  FileReport report;
  report.path = modelPath(options);
  report.info.struct_size = sizeof(report.info);
  oriel_options plan_options = planOptions(options);
  plan_options.min_tokens_per_s = 0;
  plan_options.log = Diagnostics::onLog;
  plan_options.log_user = const_cast<Diagnostics*>(&diagnostics);
  diagnostics.check(oriel_inspect(report.path.c_str(), &plan_options, &report.info),
                    Diagnostics::Blame::kOptions);
  if (report.info.runs == 0) {
    return report;
  }
  const PlanSource source = PlanSource::ofFile(report.path);
  report.here = source.plan(plan_options, diagnostics);
  oriel_options roomy = plan_options;
  const uint32_t trained = report.info.context_train;
  roomy.window_tokens = ORIEL_WINDOW_MAX;
  if (trained == 0 || trained > kComfortableTokens) {
    roomy.window_tokens = kComfortableTokens - report.here.sink_tokens;
  }
  roomy.min_window_tokens = 0;
  roomy.memory_bytes = UINT64_MAX / 2;
  if (!source.tryPlan(roomy, &report.comfortable)) {
    report.comfortable = {};
  }
  return report;
}

// --- For people ----------------------------------------------------------------------------------

/// One line "label   text", whatever a file says.
std::string row(std::string label, const std::string& text) {
  label.resize(std::max(kIndent, label.size() + 1), ' ');
  return label + oneLine(text) + '\n';
}

/// "134.5 million", "1.24 billion".
std::string countName(uint64_t count) {
  const double n = static_cast<double>(count);
  return n >= 1e9   ? formatted("%.2f billion", n / 1e9)
         : n >= 1e6 ? formatted("%.1f million", n / 1e6)
                    : std::to_string(count);
}

std::string architectureLine(const oriel_file_info& info) {
  std::string line = info.architecture;
  if (line.empty()) {
    return "not stated";
  }
  if (info.n_layers != 0 && info.n_embd != 0) {
    line += formatted(", %u layers of width %u", info.n_layers, info.n_embd);
  }
  if (info.n_heads != 0) {
    line += formatted(", %u heads of %u", info.n_heads, info.head_dim);
    if (info.n_kv_heads != info.n_heads) {
      line += formatted(" (%u for KV)", info.n_kv_heads);
    }
  }
  if (info.n_experts != 0) {
    line += formatted(", %u experts", info.n_experts);
  }
  return line;
}

/// Shares of all tensor bytes, largest first.
std::string weightsLine(const oriel_file_info& info) {
  std::vector<oriel_tensor_type> types(info.tensor_types,
                                       info.tensor_types + info.tensor_type_count);
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  uint64_t total = 0;
  for (const oriel_tensor_type& type : types) {
    total += type.bytes;
  }
  std::string line;
  for (const oriel_tensor_type& type : types) {
    const double share =
        total == 0 ? 0 : 100.0 * static_cast<double>(type.bytes) / static_cast<double>(total);
    line += formatted("%s%s %.*f%% (%u)", line.empty() ? "" : ", ", type.name,
                      share >= 10 && share < 99.5 ? 0 : 1, share, type.tensors);
  }
  return line.empty() ? "none"
                      : line + (info.tensor_count == 1
                                    ? " of 1 tensor"
                                    : " of " + std::to_string(info.tensor_count) + " tensors");
}

std::string planLine(const oriel_plan& plan) {
  std::string line = formatSize(plan.total_bytes) + " remembers ";
  const uint32_t tokens = plan.sink_tokens + plan.window_tokens;
  line += tokens == plan.context_train_tokens
              ? "all " + std::to_string(tokens) + " tokens it was trained on"
              : std::to_string(tokens) + " tokens";
  line += ", cache in " + formatsName(plan.k_format, plan.v_format);
  if (plan.k_format == ORIEL_KV_F16 && plan.v_format == ORIEL_KV_F16) {
    return line;
  }
  return line + " (keys " + kvFormatName(plan.k_format) + ", values " +
         kvFormatName(plan.v_format) + ")";
}

std::string trainedLine(const oriel_file_info& info) {
  if (info.context_train == 0) {
    return "contexts of unknown length";
  }
  std::string line = "contexts of " + std::to_string(info.context_train) + " tokens";
  line += groupsText(info.groups, info.group_count);
  if (info.group_count < 2 && info.window_train != 0 && info.window_train < info.context_train) {
    line += ", of which each sees the last " + std::to_string(info.window_train);
  }
  return line;
}

void describe(const FileReport& report) {
  const oriel_file_info& info = report.info;
  const std::filesystem::path path = std::filesystem::u8path(report.path);
  const auto orNone = [](const char* text) {
    return std::string(*text != '\0' ? text : "not stated");
  };
  std::string text = row("name", orNone(info.name));
  text += row("file", path.filename().u8string() + ", " + formatSize(info.file_bytes));
  text += row("architecture", architectureLine(info));
  text += row("parameters", countName(info.parameters));
  text += row("weights", weightsLine(info));
  text +=
      row("tokenizer", orNone(info.tokenizer) + ", " + std::to_string(info.n_vocab) + " tokens");
  text += row("chat format", std::string(info.chat_template) == "plain"
                                 ? "not known here; gets plain \"User:\" and \"Assistant:\" lines"
                                 : info.chat_template);
  text += row("trained on", trainedLine(info));
  if (std::strcmp(info.rope_scaling, "none") != 0 && info.rope_scaling[0] != '\0') {
    text += row("RoPE scaling", info.rope_scaling);
  }
  text += row("licence", orNone(info.license)) + "\n";
  if (info.runs == 0) {
    text += row("runs here", "no");
    for (uint32_t i = 0; i < info.missing_count; ++i) {
      text += row("", std::string("- ") + info.missing[i]);
    }
    printText(text);
    return;
  }
  const oriel_plan& here = report.here;
  text += row("runs here", here.fits != 0
                               ? "yes"
                               : "not in " + formatSize(here.memory_bytes) + ": give it at least " +
                                     suggestSize(here.minimum_bytes) + " with --memory");
  text += row("memory", formatSize(here.minimum_bytes) + " at the least");
  if (report.comfortable.total_bytes != 0) {
    text += row("", planLine(report.comfortable));
  }
  if (here.fits != 0 && here.total_bytes != report.comfortable.total_bytes) {
    text += row("", "up to " + formatSize(here.memory_bytes) + " given here: " + planLine(here));
  }
  printText(text);
}

// --- For programs --------------------------------------------------------------------------------

Json planFields(const oriel_plan& plan) {
  Json json;
  json["memory_bytes"] = plan.memory_bytes;
  json["total_bytes"] = plan.total_bytes;
  json["window_tokens"] = plan.window_tokens;
  json["sink_tokens"] = plan.sink_tokens;
  json["k_format"] = kvFormatName(plan.k_format);
  json["v_format"] = kvFormatName(plan.v_format);
  return json;
}

Json fields(const FileReport& report) {
  const oriel_file_info& info = report.info;
  Json json;
  json["name"] = info.name;
  json["architecture"] = info.architecture;
  json["size_label"] = info.size_label;
  json["license"] = info.license;
  json["n_layers"] = info.n_layers;
  json["n_heads"] = info.n_heads;
  json["n_kv_heads"] = info.n_kv_heads;
  json["head_dim"] = info.head_dim;
  json["n_embd"] = info.n_embd;
  json["n_ff"] = info.n_ff;
  json["n_vocab"] = info.n_vocab;
  json["n_experts"] = info.n_experts;
  json["context_train"] = info.context_train;
  json["rope_scaling"] = info.rope_scaling;
  const SlidingLayers sliding = slidingLayers(info.groups, info.group_count);
  json["local_layers"] = sliding.layers;
  json["local_window_tokens"] = sliding.window_tokens;
  json["groups"] = groupsJson(info.groups, info.group_count, false);
  json["window_train"] = info.window_train;
  json["parameters"] = info.parameters;
  json["file_bytes"] = info.file_bytes;
  json["tensor_count"] = info.tensor_count;
  Json counts = Json::object();
  Json sizes = Json::object();
  for (uint32_t i = 0; i < info.tensor_type_count; ++i) {
    const oriel_tensor_type& type = info.tensor_types[i];
    counts[type.name] = type.tensors;
    sizes[type.name] = {
        {"tensors", type.tensors}, {"parameters", type.parameters}, {"bytes", type.bytes}};
  }
  json["tensor_types"] = counts;
  json["tensor_sizes"] = sizes;
  json["tokenizer"] = info.tokenizer;
  json["chat_template"] = info.chat_template;
  json["bos_id"] = info.bos_id < 0 ? Json(nullptr) : Json(info.bos_id);
  json["eos_id"] = info.eos_id < 0 ? Json(nullptr) : Json(info.eos_id);
  json["add_bos"] = info.add_bos != 0;
  json["runs"] = info.runs != 0;
  Json missing = Json::array();
  for (uint32_t i = 0; i < info.missing_count; ++i) {
    missing.push_back(info.missing[i]);
  }
  json["missing"] = missing;
  const bool planned = info.runs != 0;
  json["fits"] = planned && report.here.fits != 0;
  json["minimum_bytes"] = planned ? Json(report.here.minimum_bytes) : Json(nullptr);
  json["here"] = planned && report.here.fits != 0 ? planFields(report.here) : Json(nullptr);
  json["comfortable"] =
      report.comfortable.total_bytes != 0 ? planFields(report.comfortable) : Json(nullptr);
  if (report.comfortable.total_bytes != 0) {
    json["comfortable"]["memory_bytes"] = report.comfortable.total_bytes;
  }
  return json;
}

// --- Of a conversation that was saved --------------------------------------------------------------

bool isSnapshot(const std::string& path) {
  char begin[8] = {};
  if (std::FILE* const file = openRegularFile(path)) {
    (void)!std::fread(begin, 1, sizeof(begin), file);
    std::fclose(file);
  }
  return std::string(begin, sizeof(begin)) == "ORIELSNP";
}

/// "2026-01-31 12:00:00 UTC"
std::string timeName(int64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  char text[64] = "";
  const std::tm* const utc = std::gmtime(&time);
  if (utc != nullptr) {
    (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", utc);
  }
  return text;
}

void describe(const std::string& path, const oriel_snapshot_info& info) {
  const std::filesystem::path file = std::filesystem::u8path(path);
  std::string text = row("snapshot", "of a conversation, version " + std::to_string(info.version));
  text += row("file", file.filename().u8string() + ", " + formatSize(info.bytes));
  if (info.readable == 0) {
    printText(text + row("readable here", "no: made by another version of Oriel"));
    return;
  }
  const std::string name = info.model;
  text +=
      row("model", (name.empty() ? "of no name" : name) + " (" + info.architecture +
                       formatted(", %016llx)", static_cast<unsigned long long>(info.model_hash)));
  text += row("saved", info.saved_at != 0 ? timeName(info.saved_at) : "not stated");
  text += row("conversation", countOf(info.position, "token") + ", " + countOf(info.turns, "turn"));
  text += row("holds", countOf(info.tokens_held, "token") + " in " +
                           formatsName(info.k_format, info.v_format));
  text += row("transcript", info.messages != 0 ? countOf(info.messages, "message") : "none");
  text += row("window", countOf(info.window_tokens, "token") + ", " +
                            countOf(info.sink_tokens, "sink") + ", batches of " +
                            std::to_string(info.chunk_tokens));
  text += row("chat format", info.chat_template);
  printText(text);
}

Json fields(const oriel_snapshot_info& info) {
  Json json;
  json["snapshot"] = true;
  json["version"] = info.version;
  json["readable"] = info.readable != 0;
  json["model"] = info.model;
  json["architecture"] = info.architecture;
  json["model_hash"] = formatted("%016llx", static_cast<unsigned long long>(info.model_hash));
  json["bytes"] = info.bytes;
  json["position"] = info.position;
  json["tokens_held"] = info.tokens_held;
  json["turns"] = info.turns;
  json["messages"] = info.messages;
  json["window_tokens"] = info.window_tokens;
  json["sink_tokens"] = info.sink_tokens;
  json["chunk_tokens"] = info.chunk_tokens;
  json["k_format"] = info.readable != 0 ? Json(kvFormatName(info.k_format)) : Json(nullptr);
  json["v_format"] = info.readable != 0 ? Json(kvFormatName(info.v_format)) : Json(nullptr);
  json["chat_template"] = info.chat_template;
  json["saved_at"] = info.saved_at != 0 ? Json(info.saved_at) : Json(nullptr);
  return json;
}

int runSnapshotInfo(const CommonOptions& options, const std::string& path) {
  const Diagnostics diagnostics(options.verbose);
  oriel_snapshot_info info = {};
  info.struct_size = sizeof(info);
  diagnostics.check(oriel_snapshot_inspect_file(path.c_str(), Diagnostics::onLog,
                                                const_cast<Diagnostics*>(&diagnostics), &info),
                    Diagnostics::Blame::kOptions);
  if (options.json) {
    printJson(fields(info));
  } else {
    describe(path, info);
  }
  return kExitDone;
}

int runInfo(const CommonOptions& options) {
  if (const std::string path = modelPath(options); isSnapshot(path)) {
    return runSnapshotInfo(options, path);
  }
  const FileReport report = inspect(options);
  if (options.json) {
    printJson(fields(report));
  } else {
    describe(report);
  }
  return kExitDone;
}

}  // namespace

Command addInfoCommand(CLI::App* program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app =
      program->add_subcommand("info", "Show what a file is and what it takes to run it");
  addModelOption(app, options.get());
  addCommonOptions(app, options.get(), Uses::kMemory);
  return {app, [options] { return runInfo(*options); }};
}

}  // namespace cli
