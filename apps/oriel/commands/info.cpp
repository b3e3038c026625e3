#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "command_line.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "plan/chart.h"
#include "plan/plan_report.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// A window that most conversations never fill.
constexpr uint32_t kComfortableTokens = 8192;
/// Column where values begin.
constexpr size_t kIndent = 15;

struct FileReport {
  std::string path;
  Json info;
  Json here;         ///< with --memory or the default memory; only for files that can run
  Json comfortable;  ///< null: cannot be planned
};

FileReport inspect(const CommonOptions& options) {
  const Diagnostics diagnostics(options.verbose);
  FileReport report;
  report.path = modelPath(options);
  oriel::Options plan_options = memoryOptions(options);
  diagnostics.listen(&plan_options);
  diagnostics.check(described(&report.info,
                              [&](char* text, size_t capacity, size_t* needed) {
                                return oriel_file_describe(report.path.c_str(), &plan_options, text,
                                                           capacity, needed);
                              }),
                    Diagnostics::Blame::kOptions);
  if (report.info["runs"] == false) {
    return report;
  }
  const PlanSource source = PlanSource::ofFile(report.path);
  report.here = source.plan(plan_options, diagnostics);
  CommonOptions roomy = options;
  const uint64_t trained = numberIn(report.info, "context_train");
  roomy.load.set("window", "max");
  if (trained == 0 || trained > kComfortableTokens) {
    roomy.load.set("window", kComfortableTokens - numberIn(report.here, "sink_tokens"));
  }
  roomy.load.erase("min_window");
  roomy.load.set("memory", UINT64_MAX / 2);
  report.comfortable = source.tryPlan(memoryOptions(roomy));
  return report;
}

// --- Text output ----------------------------------------------------------------------------------

/// One line "label   text", with unsafe characters removed.
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

std::string architectureLine(const Json& info) {
  std::string line = textIn(info, "architecture");
  if (line.empty()) {
    return "not stated";
  }
  if (numberIn(info, "n_layers") != 0 && numberIn(info, "n_embd") != 0) {
    line += ", " + info["n_layers"].dump() + " layers of width " + info["n_embd"].dump();
  }
  if (numberIn(info, "n_heads") != 0) {
    line += ", " + info["n_heads"].dump() + " heads of " + info["head_dim"].dump();
    if (info["n_kv_heads"] != info["n_heads"]) {
      line += " (" + info["n_kv_heads"].dump() + " for KV)";
    }
  }
  if (numberIn(info, "n_experts") != 0) {
    line += ", " + info["n_experts"].dump() + " experts";
  }
  return line;
}

/// Shares of all tensor bytes, largest first.
std::string weightsLine(const Json& info) {
  std::vector<std::pair<std::string, Json>> types;
  std::vector<double> keys;
  double total = 0;
  for (const auto& [name, type] : info["tensor_sizes"].items()) {
    types.emplace_back(name, type);
    keys.push_back(-realIn(type, "bytes"));
    total += realIn(type, "bytes");
  }
  std::string line;
  for (const size_t i : orderOf(keys)) {
    const auto& [name, type] = types[i];
    const double share = total == 0 ? 0 : 100 * realIn(type, "bytes") / total;
    line += formatted("%s%s %.*f%% (%u)", line.empty() ? "" : ", ", name.c_str(),
                      share >= 10 && share < 99.5 ? 0 : 1, share, countIn(type, "tensors"));
  }
  return line.empty() ? "none" : line + " of " + countOf(numberIn(info, "tensor_count"), "tensor");
}

std::string planLine(const Json& plan) {
  std::string line = formatSize(numberIn(plan, "total_bytes")) + " remembers ";
  const uint64_t tokens = numberIn(plan, "sink_tokens") + numberIn(plan, "window_tokens");
  line += tokens == numberIn(plan, "context_train_tokens")
              ? "all " + std::to_string(tokens) + " tokens it was trained on"
              : std::to_string(tokens) + " tokens";
  const std::string formats = formatsName(plan);
  line += ", cache in " + formats;
  return formats == "f16" ? line
                          : line + " (keys " + textIn(plan, "k_format") + ", values " +
                                textIn(plan, "v_format") + ")";
}

std::string trainedLine(const Json& info) {
  const uint64_t trained = numberIn(info, "context_train");
  if (trained == 0) {
    return "contexts of unknown length";
  }
  const uint64_t window = numberIn(info, "window_train");
  std::string line = "contexts of " + std::to_string(trained) + " tokens";
  line += groupsText(info["groups"]);
  if (info["groups"].size() < 2 && window != 0 && window < trained) {
    line += "; each sees the last " + std::to_string(window);
  }
  return line;
}

void describe(const FileReport& report) {
  const Json& info = report.info;
  const std::filesystem::path path = std::filesystem::u8path(report.path);
  const auto orNone = [&](const char* field) {
    const std::string text = textIn(info, field);
    return text.empty() ? "not stated" : text;
  };
  std::string text = row("name", orNone("name"));
  text += row("file", path.filename().u8string() + ", " + formatSize(numberIn(info, "file_bytes")));
  text += row("architecture", architectureLine(info));
  text += row("parameters", countName(numberIn(info, "parameters")));
  text += row("weights", weightsLine(info));
  text += row("tokenizer", orNone("tokenizer") + ", " + info["n_vocab"].dump() + " tokens");
  text += row("chat format", info["chat_template"] == "plain"
                                 ? "not known here; gets plain \"User:\" and \"Assistant:\" lines"
                                 : textIn(info, "chat_template"));
  text += row("trained on", trainedLine(info));
  if (const std::string scaling = textIn(info, "rope_scaling");
      scaling != "none" && !scaling.empty()) {
    text += row("RoPE scaling", scaling);
  }
  if (info["prediction_block"] == true) {
    text += row("guesses", "by a prediction block in the file, with --draft");
  }
  text += row("licence", orNone("license")) + "\n";
  if (info["runs"] == false) {
    text += row("runs here", "no");
    for (const Json& missing : info["missing"]) {
      text += row("", "- " + missing.get<std::string>());
    }
    printText(text);
    return;
  }
  const Json& here = report.here;
  const Json& comfortable = report.comfortable;
  const uint64_t least = numberIn(here, "minimum_bytes");
  const std::string memory = formatSize(numberIn(here, "memory_bytes"));
  text += row("runs here", plannedFits(here) ? "yes"
                                             : "not in " + memory + ": give it at least " +
                                                   suggestSize(least) + " with --memory");
  text += row("memory", formatSize(least) + " at the least");
  if (!comfortable.is_null()) {
    text += row("", planLine(comfortable));
  }
  if (plannedFits(here) &&
      (comfortable.is_null() || here["total_bytes"] != comfortable["total_bytes"])) {
    text += row("", "up to " + memory + " given here: " + planLine(here));
  }
  printText(text);
}

// --- JSON output ----------------------------------------------------------------------------------

Json planFields(const Json& plan) {
  Json json;
  for (const char* const field :
       {"memory_bytes", "total_bytes", "window_tokens", "sink_tokens", "k_format", "v_format"}) {
    json[field] = plan[field];
  }
  return json;
}

Json fields(const FileReport& report) {
  Json json = report.info;
  const SlidingLayers sliding = slidingLayers(json["groups"]);
  json["local_layers"] = sliding.layers;
  json["local_window_tokens"] = sliding.window_tokens;
  json.emplace("missing", Json::array());
  const bool fits = !report.here.is_null() && plannedFits(report.here);
  json["fits"] = fits;
  json["minimum_bytes"] = report.here.is_null() ? Json() : report.here["minimum_bytes"];
  json["here"] = fits ? planFields(report.here) : Json();
  json["comfortable"] = report.comfortable.is_null() ? Json() : planFields(report.comfortable);
  if (!report.comfortable.is_null()) {
    json["comfortable"]["memory_bytes"] = report.comfortable["total_bytes"];
  }
  return json;
}

// --- Saved conversations ---------------------------------------------------------------------------

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

void describe(const std::string& path, const Json& info) {
  const std::filesystem::path file = std::filesystem::u8path(path);
  std::string text = row("snapshot", "of a conversation, version " + info["version"].dump());
  text += row("file", file.filename().u8string() + ", " + formatSize(numberIn(info, "bytes")));
  if (info["readable"] == false) {
    printText(text + row("readable here", "no: made by another version of Oriel"));
    return;
  }
  const std::string name = textIn(info, "model");
  const uint64_t messages = numberIn(info, "messages");
  text += row("model", (name.empty() ? "of no name" : name) + " (" + textIn(info, "architecture") +
                           ", " + textIn(info, "model_hash") + ")");
  text += row("saved", info["saved_at"].is_null() ? "not stated" : timeName(info["saved_at"]));
  text += row("conversation", countOf(numberIn(info, "position"), "token") + ", " +
                                  countOf(numberIn(info, "turns"), "turn"));
  text +=
      row("holds", countOf(numberIn(info, "tokens_held"), "token") + " in " + formatsName(info));
  text += row("transcript", messages != 0 ? countOf(messages, "message") : "none");
  text += row("window", countOf(numberIn(info, "window_tokens"), "token") + ", " +
                            countOf(numberIn(info, "sink_tokens"), "sink") + ", batches of " +
                            info["chunk_tokens"].dump());
  text += row("chat format", textIn(info, "chat_template"));
  printText(text);
}

/// Includes the fields of an unreadable file.
Json snapshotFields(const Json& info) {
  Json json = {{"snapshot", true},    {"version", 0},        {"readable", false},
               {"model", ""},         {"architecture", ""},  {"model_hash", std::string(16, '0')},
               {"bytes", 0},          {"position", 0},       {"tokens_held", 0},
               {"turns", 0},          {"messages", 0},       {"window_tokens", 0},
               {"sink_tokens", 0},    {"chunk_tokens", 0},   {"k_format", nullptr},
               {"v_format", nullptr}, {"chat_template", ""}, {"saved_at", nullptr}};
  json.update(info);
  return json;
}

int runSnapshotInfo(const CommonOptions& options, const std::string& path) {
  const Diagnostics diagnostics(options.verbose);
  oriel::Options library_options;
  diagnostics.listen(&library_options);
  Json info;
  diagnostics.check(described(&info,
                              [&](char* text, size_t capacity, size_t* needed) {
                                return oriel_snapshot_describe(path.c_str(), nullptr, 0,
                                                               &library_options, text, capacity,
                                                               needed);
                              }),
                    Diagnostics::Blame::kOptions);
  if (options.json) {
    printJson(snapshotFields(info));
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
  CLI::App* app = program->add_subcommand("info", "Describe a model file and the memory it needs");
  addModelOption(app, options.get());
  addCommonOptions(app, options.get(), Uses::kMemory);
  return {app, [options] { return runInfo(*options); }};
}

}  // namespace cli
