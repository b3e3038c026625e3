#include "plan/plan_report.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "plan/chart.h"
#include "report.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {

PlanSource PlanSource::ofFile(std::string path) {
  PlanSource source;
  source.name_ = std::move(path);
  return source;
}

PlanSource PlanSource::ofShape(std::string name, std::string weights) {
  PlanSource source;
  source.name_ = std::move(name);
  source.weights_ = std::move(weights);
  source.is_shape_ = true;
  return source;
}

oriel_status PlanSource::planTo(const oriel::Options& options, Json* plan) const {
  return described(plan, [&](char* json, size_t capacity, size_t* needed) {
    return is_shape_ ? oriel_shape_describe(shape().c_str(), &options, json, capacity, needed)
                     : oriel_plan_describe(name_.c_str(), &options, json, capacity, needed);
  });
}

Json PlanSource::plan(const oriel::Options& options, const Diagnostics& diagnostics) const {
  Json plan;
  diagnostics.check(planTo(options, &plan), Diagnostics::Blame::kOptions);
  return plan;
}

Json PlanSource::tryPlan(oriel::Options options) const {
  options.log = nullptr;
  Json plan;
  (void)planTo(options, &plan);
  return plan;
}

oriel_speed PlanSource::speed(const CommonOptions& options) const {
  return is_shape_ ? deviceSpeed(options, nullptr, shape().c_str())
                   : deviceSpeed(options, name_.c_str(), nullptr);
}

bool PlanSource::weightsKnown(const oriel::Options& options) const {
  const Json plan = is_shape_ ? tryPlan(options) : Json();
  return plan.is_null() || !weightsUnknown(plan);
}

std::string PlanSource::title() const {
  return oneLine(is_shape_ ? name_ : std::filesystem::u8path(name_).filename().u8string());
}

Json knownShapes() {
  Json list;
  (void)described(&list, oriel_shape_list);
  return list.is_null() ? Json::array() : list["shapes"];
}

namespace {

/// Parts of a plan.
constexpr std::pair<const char*, const char*> kPurposes[] = {{"weights", "weights_bytes"},
                                                             {"cache", "kv_bytes"},
                                                             {"activations", "activation_bytes"},
                                                             {"staging", "staging_bytes"},
                                                             {"host", "host_bytes"}};
/// A page of English text has about 500 words.
constexpr uint64_t kTokensOfPage = 700;
constexpr uint64_t kDefaultWindow = 8192;  ///< unless requested otherwise

std::string sizeIn(const Json& object, const char* field) {
  return formatSize(numberIn(object, field));
}
std::string groupedIn(const Json& object, const char* field) {
  return grouped(numberIn(object, field));
}

/// A label and its text, with a hanging indent.
std::string line(const std::string& label, const std::string& text) {
  constexpr size_t kColumn = 14;
  std::string out = "  " + label;
  out.resize(std::max(out.size() + 1, kColumn), ' ');
  return out + text + "\n";
}

std::string bytesByPurpose(const Json& plan) {
  const uint64_t total = numberIn(plan, "total_bytes");
  constexpr size_t kBarColumn = 28;
  const auto bar_columns = static_cast<unsigned>(
      std::clamp<size_t>(resultColumns(), kBarColumn, kBarColumn + 32) - kBarColumn);
  std::string text;
  for (const auto& [name, field] : kPurposes) {
    if (plan[field].is_null()) {
      text += formatted("  %-12s%12s\n", name, "not known");
      continue;
    }
    const uint64_t bytes = numberIn(plan, field);
    const double share = total == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(total);
    text += formatted("  %-12s%12s  ", name, formatSize(bytes).c_str()) + bar(share, bar_columns) +
            "\n";
  }
  if (const uint64_t bytes = numberIn(plan, "constraint_bytes"); bytes != 0) {
    text += formatted("  %-12s%12s  of host, for schemas and grammars\n", "",
                      formatSize(bytes).c_str());
  }
  if (numberIn(plan, "image_bytes") != 0) {
    text += formatted("  %-12s%12s  of host, for pictures of up to %s tokens\n", "",
                      sizeIn(plan, "image_bytes").c_str(), plan["image_tokens"].dump().c_str());
  }
  if (numberIn(plan, "adapter_bytes") != 0) {
    text += formatted("  %-12s%12s  of these, for adapters\n", "",
                      sizeIn(plan, "adapter_bytes").c_str());
  }
  text += formatted("  %-12s%12s\n", weightsUnknown(plan) ? "the rest" : "total",
                    formatSize(total).c_str());
  if (const uint64_t mapped = numberIn(plan, "mapped_bytes"); mapped != 0) {
    text += formatted(
        "  mapped      %12s  of weights: the system may take them back\n"
        "  held        %12s\n",
        formatSize(mapped).c_str(), formatSize(total - mapped).c_str());
  }
  return text + (numberIn(plan, "on_file_bytes") != 0
                     ? formatted("  %-12s%12s  read when tokens need it, never held as a whole\n",
                                 "on file", sizeIn(plan, "on_file_bytes").c_str())
                     : "");
}

std::string recallText(const Json& plan) {
  if (numberIn(plan, "recall_tokens") == 0) {
    return "  recall      not in this model: evicted tokens are lost\n";
  }
  return "  recall      " + plan["recall_file_tokens"].dump() +
         " tokens that left the window, in a file of up to " + sizeIn(plan, "recall_file_bytes") +
         ";\n              " + plan["recall_tokens"].dump() + " of them come back at a time, in " +
         sizeIn(plan, "recall_memory_bytes") + " with the index\n";
}

std::string draftText(const Json& plan) {
  if (numberIn(plan, "draft_tokens") == 0) {
    return numberIn(plan, "state_slots") == 0 || numberIn(plan, "expert_slots") != 0 ||
                   numberIn(plan, "sessions") > 1
               ? "none: not in plans of several sessions or experts on file"
               : "none: no memory is left for their states";
  }
  return "up to " + plan["draft_tokens"].dump() + " guesses a step, in " +
         sizeIn(plan, "draft_bytes") +
         (numberIn(plan, "draft_weights_bytes") != 0
              ? ", and " + sizeIn(plan, "draft_weights_bytes") + " of weights"
              : "");
}

/// The location of the experts, and its cost.
std::string expertLines(const Json& plan) {
  if (numberIn(plan, "expert_slots") == 0) {
    return "";
  }
  std::string text =
      formatted("  experts     %u of %u are in memory in each layer, %.0f %% of a token's\n",
                countIn(plan, "expert_slots"), countIn(plan, "expert_count"),
                100 * realIn(plan, "expert_hit_rate"));
  const double seconds = realIn(plan, "file_s");
  return seconds > 0 ? text + formatted("              reading the others takes %.0f ms a token\n",
                                        1e3 * seconds)
                     : text;
}

bool sharesWindow(const Json& plan) {
  const Json& shares = plan["window_shares"];
  return std::any_of(shares.begin(), shares.end(), [](const Json& share) { return share != 0; });
}

std::string why(const Json& plan, const Settings& load) {
  if (!plannedFits(plan)) {
    return "the smallest plan with these options";
  }
  const uint64_t given = load.number("window");
  const uint64_t window = numberIn(plan, "window_tokens");
  const uint64_t trained = numberIn(plan, "context_train_tokens");
  if (const uint32_t beyond = beyondTrained(plan); beyond != 0) {
    return "as given: " + grouped(beyond) + " tokens more than the " + grouped(trained) +
           " that the model was trained on, and replies get worse there";
  }
  if (given != 0 && given != ORIEL_WINDOW_MAX) {
    return "as given";
  }
  if (trained != 0 && numberIn(plan, "sink_tokens") + window >= trained) {
    return "all that the model was trained on";
  }
  if (given == 0 && window == kDefaultWindow) {
    return "the default; --window max for more of the " + grouped(trained) +
           " that the model was trained on";
  }
  // One more token is rounded up in every layer.
  const uint64_t another = numberIn(plan, "kv_bytes_per_token");
  const uint64_t left = numberIn(plan, "memory_bytes") - numberIn(plan, "total_bytes");
  if (left > 2 * another + 4096 && sharesWindow(plan)) {
    return "the longest window that was measured for these layers";
  }
  return "the longest that fits; another token takes " + formatSize(another);
}

uint32_t bitsOf(const Json& choice) {
  const auto bits = [](const std::string& format) {
    return format == "f16" ? 16 : format == "int8" ? 8 : 4;
  };
  return static_cast<uint32_t>(bits(textIn(choice, "k_format")) + bits(textIn(choice, "v_format")));
}

/// Why a pair of formats was or was not chosen.
std::string verdict(const Json& plan, const Json& choice) {
  const std::string refused = textIn(choice, "refused");
  if (refused == "quality") {
    return "never chosen: it failed the calibration of this model";
  }
  if (refused == "speed") {
    return "slower than was asked for";
  }
  const uint64_t memory = numberIn(plan, "memory_bytes");
  if (!plannedFits(choice, memory)) {
    return formatSize(leastOf(choice) - memory) + " too little";
  }
  if (choice["chosen"] == true) {
    return "chosen: the least expected loss";
  }
  const int64_t more = static_cast<int64_t>(numberIn(choice, "window_tokens")) -
                       static_cast<int64_t>(numberIn(plan, "window_tokens"));
  return (more == 0 ? ""
                    : grouped(static_cast<uint64_t>(more < 0 ? -more : more)) +
                          (more < 0 ? " fewer tokens, " : " more tokens, ")) +
         (bitsOf(choice) > bitsOf(plan) ? "more precise" : "less precise") +
         formatted(": %.4f worse", realIn(choice, "loss_nats") - realIn(plan, "loss_nats"));
}

/// Per layer; 0: none.
uint32_t heldExperts(const Json& plan) {
  const uint32_t slots = countIn(plan, "expert_slots");
  return slots != 0 ? slots : countIn(plan, "expert_count");
}

std::string choiceTable(const Json& plan) {
  std::string text = "  formats     " + formatted("%10s  %8s", "window", "loss") + "\n";
  for (const Json& choice : plan["choices"]) {
    text += formatted("  %c %-10s%10s  %8.4f  %s\n", choice["chosen"] == true ? '>' : ' ',
                      formatsName(choice).c_str(), groupedIn(choice, "window_tokens").c_str(),
                      realIn(choice, "loss_nats"), verdict(plan, choice).c_str());
  }
  return text;
}

std::string neighbourTable(const Json& plan, const std::vector<Json>& neighbours) {
  std::string text = "  memory      " + formatted("%10s  %8s", "window", "loss") + "\n";
  const uint64_t given = numberIn(plan, "memory_bytes");
  const double loss = realIn(plan, "loss_nats");
  const auto row = [&](const Json& other) {
    const uint64_t memory = numberIn(other, "memory_bytes");
    const char mark = memory == given ? '>' : ' ';
    const std::string size = formatSize(memory);
    if (!plannedFits(other)) {
      return formatted("  %c %-10s%10s  %8s  %s too little\n", mark, size.c_str(), "-", "-",
                       formatSize(leastOf(other) - memory).c_str());
    }
    const double other_loss = realIn(other, "loss_nats");
    std::string verdict = formatsName(other);
    if (memory == given) {
      verdict += ", as given";
    } else if (!plannedFits(plan)) {
      verdict += formatted(", %s more than given", formatSize(memory - given).c_str());
    } else if (other["total_bytes"] == plan["total_bytes"] && other_loss >= loss) {
      verdict += memory < given ? ", enough for the same" : ", nothing more to gain";
    } else if (heldExperts(other) != heldExperts(plan) && other_loss == loss) {
      verdict += formatted(", the same loss, %u of %u experts held", heldExperts(other),
                           countIn(plan, "expert_count"));
    } else if (memory < given && other_loss < loss) {
      verdict += formatted(", loss %.4f lower: windows by layer", loss - other_loss);
    } else if (memory < given) {
      verdict += formatted(", loss %.4f higher", other_loss - loss);
    } else if (other_loss > loss) {
      verdict += ", in every layer: exact until it is full";
    } else {
      verdict += formatted(", loss %.4f lower", loss - other_loss);
    }
    return formatted("  %c %-10s%10s  %8.4f  %s\n", mark, size.c_str(),
                     groupedIn(other, "window_tokens").c_str(), other_loss, verdict.c_str());
  };
  bool given_shown = false;
  for (const Json& neighbour : neighbours) {
    if (!given_shown && numberIn(neighbour, "memory_bytes") > given) {
      text += row(plan);
      given_shown = true;
    }
    text += row(neighbour);
  }
  return text;
}

/// Bytes per token, and the bytes of full sliding layers; null if the shape cannot be planned.
std::pair<Json, uint64_t> kvBytesPerToken(const Json& shape, const char* formats) {
  oriel::Options options;
  options.memory_bytes = 1;
  options.device = "cpu";  // caches take as much on every device, and a list has 200 plans
  options.set("kv", formats);
  const Json plan = PlanSource::ofShape(shape["name"], "").tryPlan(options);
  return plan.is_null()
             ? std::pair(Json(), uint64_t{0})
             : std::pair(plan["kv_bytes_per_token"], slidingLayers(plan["groups"]).bytes);
}

std::string groupLine(const Json& plan, const Json& group) {
  const std::string kind = group["kind"];
  const std::string layers = group["layers"].dump() + " layers ";
  const std::string window = groupedIn(group, "window_tokens");
  const std::string bytes =
      sizeIn(group, "bytes") + (numberIn(plan, "sessions") > 1 ? " a session" : "");
  if (kind == "session") {
    return "              calibration lets " + group["layers"].dump() +
           (group["layers"] == 1 ? " layer" : " layers") + " see only " + window + " tokens\n";
  }
  if (kind == "sliding") {
    return "  sliding     " + layers + "see the last " + window + " tokens and hold " + bytes +
           " when full\n";
  }
  if (kind == "convolution") {
    return "  convolve    " + layers + "need the last " + window + " tokens and hold " + bytes +
           "\n";
  }
  return "  state       " + layers + "keep a state of " + sizeIn(group, "bytes_per_token") +
         " in " + group["ring_tokens"].dump() + " slots, " + bytes + " in " +
         textIn(plan, "state_format") + "\n";
}

std::string layerList(const Json& layers) {
  std::string text;
  for (const Json& layer : layers) {
    text += (text.empty() ? "" : ", ") + layer.dump();
  }
  return text;
}

std::vector<uint64_t> depthsOf(const Json& plan) {
  const uint64_t full = numberIn(plan, "sink_tokens") + numberIn(plan, "window_tokens");
  std::vector<uint64_t> depths;
  for (const uint64_t depth : {64, 256, 1024, 4096, 16384, 65536}) {
    if (depth < full) {
      depths.push_back(depth);
    }
  }
  depths.push_back(full);
  return depths;
}

/// Like predictedFields, with a full window, and for several depths.
Json planPredictions(const Json& plan, const oriel_speed* speed) {
  const std::vector<uint64_t> depths = depthsOf(plan);
  Json json = predictedFields(plan, {static_cast<double>(depths.back()), 0, 0});
  json["device"] = speed != nullptr ? Json(speed->device) : Json(nullptr);
  const bool known = !plan["decode"].is_null();
  json["reason"] = known                  ? Json(nullptr)
                   : weightsUnknown(plan) ? Json("the weights of this model are not known")
                   : speed != nullptr && numberIn(plan, "expert_slots") != 0
                       ? Json("how fast experts are read is not known without the model's file")
                       : Json("no device was named: add --device");
  json["at_depths"] = Json::array();
  for (const uint64_t depth : depths) {
    oriel_prediction prediction;
    if (predict(plan, depth, 0, &prediction)) {
      Json entry;
      entry["depth"] = depth;
      entry["decode_tokens_per_s"] = prediction.decode_tokens_per_s;
      entry["prefill_tokens_per_s"] = prediction.prefill_tokens_per_s;
      entry["decode_limit"] = limitName(prediction.decode_limit);
      json["at_depths"].push_back(entry);
    }
  }
  return json;
}

std::string speedTable(const Json& plan, const oriel_speed& speed) {
  Table table({{"depth"},
               {"decode tok/s", true},
               {"prefill tok/s", true, 1},
               {"most of the time goes into", false, 2}});
  for (const uint64_t depth : depthsOf(plan)) {
    oriel_prediction prediction;
    if (!predict(plan, depth, 0, &prediction)) {
      return weightsUnknown(plan)
                 ? "  speed       not known: the weights of this model are not\n"
                 : "  speed       not known: how fast experts are read, only its file can tell\n";
    }
    table.row({grouped(depth), formatted("%.1f", prediction.decode_tokens_per_s),
               formatted("%.1f", prediction.prefill_tokens_per_s),
               limitName(prediction.decode_limit)});
  }
  std::string text = "  speed       predicted for " + oneLine(speed.device) + "\n" +
                     table.text(resultColumns(), 2);
  oriel_prediction prediction;
  if (predict(plan, 0, 0, &prediction) && prediction.crossover_tokens > 0) {
    text += "  from " + grouped(static_cast<uint64_t>(prediction.crossover_tokens)) +
            " tokens on, attention takes longer than the matrices\n";
  }
  return text;
}

// True if anything depends on the window.
bool hasAttention(const Json& plan) {
  const Json& groups = plan["groups"];
  return groups.empty() || std::any_of(groups.begin(), groups.end(), [](const Json& group) {
           return group["layers"] != 0 &&
                  (group["kind"] == "session" || group["kind"] == "sliding");
         });
}

/// Memory of several conversations; nothing without a shared start.
std::string sessionLines(const Json& plan) {
  std::string text;
  const bool several = numberIn(plan, "sessions") > 1;
  if (several) {
    const std::vector<uint32_t> list = plan["session_windows"];
    const std::set<uint32_t> windows(list.begin(), list.end());
    std::string each = " tokens";
    for (size_t i = windows.size() == 1 ? 1 : list.size(); i-- > 0;) {
      each = (i > 0 ? ", " : "") + grouped(list[i]) + each;
    }
    text += "  sessions    " + plan["sessions"].dump() + " with " +
            (windows.size() == 1 ? "a window of " : "windows of ") + each +
            (windows.size() == 1 ? " each" : "") + "; one more takes " +
            sizeIn(plan, "session_bytes") + "\n";
  }
  if (numberIn(plan, "prefix_tokens") != 0) {
    text += "  prefix      " + groupedIn(plan, "prefix_tokens") + " tokens in f16, " +
            sizeIn(plan, "prefix_bytes") + (several ? ", held once for all\n" : "\n");
  }
  constexpr uint64_t kUsualTranscript = 32 * 1024;  // of a session
  if (numberIn(plan, "transcript_bytes") > kUsualTranscript * numberIn(plan, "sessions")) {
    text += "  transcript  " + sizeIn(plan, "transcript_bytes") +
            " of host, for the text of messages\n";
  }
  return text;
}

/// Memory that remains after a trim.
std::string trimLines(const Json& plan) {
  const auto size = [&](oriel_trim_level level) {
    return sizeIn(plan["trim_levels"][static_cast<size_t>(level)], "bytes");
  };
  return line("can shrink", "to " + size(ORIEL_TRIM_SCRATCH) + " (scratch freed), " +
                                size(ORIEL_TRIM_WEIGHTS) + " (weights too), " +
                                size(ORIEL_TRIM_CACHE) + " (cache too)");
}

/// "8 bits for keys, 4 for values (K8V4)"
std::string formatWords(const Json& plan) {
  const auto bits = [](const std::string& format) {
    return format == "f16" ? "16" : format == "int8" ? "8" : "4";
  };
  const std::string k = bits(plan["k_format"]);
  const std::string v = bits(plan["v_format"]);
  return k == "16" && v == "16"
             ? "16 bits a number, full precision (f16)"
             : k + " bits for keys, " + v + " for values (" + formatsName(plan) + "), " +
                   (k == "8" && v == "8" ? "next to no loss"
                    : k == "8"           ? "little loss"
                                         : "some loss");
}

/// "806 tokens, some 1 page of text"
std::string contextWords(const Json& plan) {
  const uint64_t tokens = numberIn(plan, "sink_tokens") + numberIn(plan, "window_tokens");
  const uint64_t pages = (tokens + kTokensOfPage / 2) / kTokensOfPage;
  return countOf(tokens, "token") + (pages == 0 ? ", less than a page of text"
                                     : pages == 1
                                         ? ", about a page of text"
                                         : ", some " + countOf(pages, "page") + " of text");
}

std::string speedWords(const Json& plan, const oriel_speed* speed) {
  const std::vector<uint64_t> depths = depthsOf(plan);
  oriel_prediction first;
  oriel_prediction full;
  if (speed == nullptr) {
    return weightsUnknown(plan) ? "" : line("speed", "add --device auto to predict it");
  }
  if (!predict(plan, depths.front(), 0, &first) || !predict(plan, depths.back(), 0, &full)) {
    return line("speed", weightsUnknown(plan)
                             ? "not known: the weights of this model are not"
                             : "not known: how fast experts are read, only its file can tell");
  }
  return line("speed", formatted("%.1f tokens/s, %.1f with the context full; prompts %.0f tokens/s",
                                 first.decode_tokens_per_s, full.decode_tokens_per_s,
                                 first.prefill_tokens_per_s) +
                           " (predicted for " + oneLine(speed->device) + ")");
}

/// Says if the model fits, and by how much.
std::string verdictOf(const PlanSource& source, const std::string& memory, const Json& plan) {
  if (weightsUnknown(plan)) {
    return "whether " + source.title() + " fits in " + memory + " is not known";
  }
  const uint64_t given = numberIn(plan, "memory_bytes");
  if (!plannedFits(plan)) {
    return source.title() + " does not fit in " + memory + ": " +
           formatSize(leastOf(plan) - given) + " too little";
  }
  const uint64_t left = given - std::min(given, numberIn(plan, "total_bytes"));
  return source.title() + " fits in " + memory +
         (left >= 1024 ? ", " + formatSize(left) + " are left over" : "");
}

}  // namespace

std::vector<Json> neighboursOf(const PlanSource& source, const oriel::Options& options,
                               const Json& plan) {
  std::vector<Json> neighbours;
  const uint64_t quarter = numberIn(plan, "memory_bytes") / 4;
  for (const uint64_t quarters : {2, 3, 6, 8}) {
    oriel::Options other = options;
    other.set("memory", quarter * quarters);
    if (quarter != 0 && quarter <= UINT64_MAX / quarters) {
      Json neighbour = source.tryPlan(other);
      if (!neighbour.is_null()) {
        neighbours.push_back(std::move(neighbour));
      }
    }
  }
  return neighbours;
}

namespace {

/// Losses, formats, states, crossover, trim levels: the reasons for the plan.
std::string explained(const Settings& load, const oriel_speed* speed, const Json& plan,
                      const std::vector<Json>& neighbours) {
  const bool attends = hasAttention(plan);
  std::string text;
  if (attends) {
    text +=
        line("window", "the last " + groupedIn(plan, "window_tokens") + " tokens and the first " +
                           groupedIn(plan, "sink_tokens") + " (sinks)");
    text +=
        line("cache", "keys " + textIn(plan, "k_format") + ", values " + textIn(plan, "v_format") +
                          ", " + sizeIn(plan, "kv_bytes_per_token") + " a token");
  }
  for (size_t i = 1; i < plan["groups"].size(); ++i) {
    text += groupLine(plan, plan["groups"][i]);
  }
  if (numberIn(plan, "state_slots") != 0) {
    text += numberIn(plan, "checkpoints") != 0
                ? line("checkpoints", plan["checkpoints"].dump() +
                                          " of the slots, to go back to without reading all again")
                : line("checkpoints", "none: going back reads the conversation again");
  }
  if (numberIn(plan, "activation_bits") == 8) {
    text +=
        line("activations", "8 bits on the CPU: faster prompts; --activations 16 is more exact");
  }
  for (const auto& [field, what] : {std::pair("raised_by_bias", "extreme key biases"),
                                    std::pair("raised_by_norm", "wide key norms")}) {
    if (!plan[field].empty()) {
      text +=
          line("guards", what + std::string(": more bits for layers ") + layerList(plan[field]));
    }
  }
  if (attends) {
    const double loss = realIn(plan, "loss_nats");
    text += line("loss", formatted("%.4f nats a token, expected by %s", loss,
                                   plan["calibrated"] == true ? "measurements of this model"
                                                              : "published priors"));
    text += loss < 0 ? line("", "(below 0: with less to see some layers did better)") : "";
  }
  if (!weightsUnknown(plan)) {
    text +=
        line("bytes", groupedIn(plan, "total_bytes") + " of " + groupedIn(plan, "memory_bytes") +
                          ", at least " + groupedIn(plan, "minimum_bytes"));
    text += trimLines(plan);
  }
  if (numberIn(plan, "crossover_tokens") != 0) {
    text += line("crossover", "from " + groupedIn(plan, "crossover_tokens") +
                                  " tokens on, a reply reads more cache than weights");
  }
  if (load.number("retrieval") != 0) {
    text += recallText(plan);
  }
  text += speed != nullptr ? "\n" + speedTable(plan, *speed) : "";
  if (!attends) {
    return text;
  }
  return text + "\n" + choiceTable(plan) + "\n" + neighbourTable(plan, neighbours) +
         "\n"
         "  loss: 0.01 nats a token make the right next token 1 % less likely.\n"
         "  K8V4: keys in 8 bits a number, values in 4; f16: 16 bits, the cache as it is.\n"
         "  Sinks: the session's first tokens; they stay when older ones drop out.\n";
}

}  // namespace

std::string describePlan(const PlanSource& source, const Settings& load, const oriel_speed* speed,
                         const Json& plan, const std::vector<Json>* neighbours) {
  const std::string memory = sizeAsTyped(load, "memory", numberIn(plan, "memory_bytes"));
  const bool unknown = weightsUnknown(plan);
  std::string text = verdictOf(source, memory, plan) + "\n\n" + bytesByPurpose(plan) + "\n";
  if (hasAttention(plan)) {
    text += line("context", contextWords(plan)) + line("", why(plan, load)) +
            line("cache", formatWords(plan));
  } else {
    text +=
        line("context", "no layer attends: states follow from all tokens; " +
                            groupedIn(plan, "window_tokens") + " are kept as ids, for going back");
  }
  text += sessionLines(plan) + expertLines(plan);
  if (load.number("speculate") != 0 || numberIn(plan, "draft_weights_bytes") != 0) {
    text += line("drafts", draftText(plan));
  }
  text += speedWords(plan, speed);
  text += unknown ? line("weights", "not described here: the memory is planned for the rest")
                  : line("least", sizeIn(plan, "minimum_bytes"));
  return text + (neighbours != nullptr ? "\n" + explained(load, speed, plan, *neighbours)
                                       : "\n  --explain shows losses, other formats and other "
                                         "amounts of memory.\n");
}

Json planJson(const PlanSource& source, const Json& plan, const oriel_speed* speed,
              const std::vector<Json>& neighbours) {
  Json json;
  if (source.isShape()) {
    json["arch"] = source.name();
  }
  json.update(plan);
  json["context_train"] = plan["context_train_tokens"];
  json["beyond_trained_tokens"] = beyondTrained(plan);
  json["kv_growth_bytes_per_token"] = plan["kv_bytes_per_token"];
  const SlidingLayers sliding = slidingLayers(plan["groups"]);
  json["kv_local_bytes"] = sliding.bytes;
  json["local_layers"] = sliding.layers;
  json["local_window_tokens"] = sliding.window_tokens;
  json["local_ring_tokens"] = sliding.ring_tokens;
  json["predicted"] = planPredictions(plan, speed);
  for (Json& choice : json["choices"]) {
    choice["why"] = verdict(plan, choice);
  }
  json["alternatives"] = Json::array();
  for (const Json& neighbour : neighbours) {
    Json entry;
    for (const char* const field : {"memory_bytes", "fits", "window_tokens", "k_format", "v_format",
                                    "total_bytes", "loss_nats"}) {
      entry[field] = neighbour[field];
    }
    json["alternatives"].push_back(entry);
  }
  return json;
}

std::string describeShapes(const Json& shapes) {
  // From 40 columns on, shows the name and the largest and smallest bytes per token.
  Table table({{"name"},
               {"layers", true, 5},
               {"heads", true, 4},
               {"context", true, 3},
               {"params", true, 1},
               {"f16", true},
               {"K8V4", true, 2},
               {"K4V4", true}});
  for (const Json& shape : shapes) {
    const auto [f16, sliding] = kvBytesPerToken(shape, "f16");
    const auto bytes = [](const Json& value) {
      return std::to_string(value.is_null() ? 0 : value.get<uint64_t>());
    };
    const std::string state_bytes = shape["state_bytes"].dump();
    std::string note;
    if (numberIn(shape, "latent_dim") != 0) {
      note = "one vector of " + shape["latent_dim"].dump() + " values";
    } else if (numberIn(shape, "local_layers") != 0) {
      note = "and " + std::to_string(sliding) + " bytes in f16 for " +
             shape["local_layers"].dump() + " layers that see " +
             shape["local_window_tokens"].dump() + " tokens";
    } else if (numberIn(shape, "state_layers") != 0) {
      note = "and " + state_bytes + " bytes for the states of " + shape["state_layers"].dump() +
             " layers, in two versions";
    } else if (numberIn(shape, "convolution_layers") != 0) {
      note = "and " + state_bytes + " bytes for " + shape["convolution_layers"].dump() +
             " layers of short convolutions";
    }
    table.row(
        {textIn(shape, "name"), shape["n_layers"].dump(),
         shape["n_heads"].dump() + "/" + shape["n_kv_heads"].dump() + "/" +
             shape["head_dim"].dump(),
         shape["context_train"].dump(),
         shape["parameters"].is_null() ? "?"
                                       : formatted("%.2fB", realIn(shape, "parameters") / 1e9),
         bytes(f16), bytes(kvBytesPerToken(shape, "k8v4").first),
         bytes(kvBytesPerToken(shape, "k4v4").first)},
        note);
  }
  return table.text(resultColumns()) +
         "\nf16, K8V4 and K4V4 are bytes of cache a token; heads are query/KV/head_dim. "
         "`oriel plan --arch NAME --memory SIZE` plans for one; where params are ? the weights are "
         "not "
         "described, and it cannot say whether the model fits.\n";
}

Json shapesJson(const Json& shapes) {
  Json json;
  json["shapes"] = shapes;
  for (Json& shape : json["shapes"]) {
    for (const char* const formats : kFormatPairs) {
      const Json growth = kvBytesPerToken(shape, formats).first;
      shape["kv_bytes_per_token"][formats] = growth == 0 ? Json() : growth;
    }
  }
  return json;
}

}  // namespace cli
