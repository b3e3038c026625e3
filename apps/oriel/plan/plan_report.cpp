#include "plan/plan_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <set>

#include "oriel/sessions.h"

#include "kv_formats.h"
#include "plan/layer_groups.h"
#include "report.h"
#include "sizes.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

std::string bytesByPurpose(const oriel_plan& plan) {
  const struct {
    const char* name;
    uint64_t bytes;
  } rows[] = {
      {"weights", plan.weights_bytes},
      {"cache", plan.kv_bytes},
      {"activations", plan.activation_bytes},
      {"staging", plan.staging_bytes},
      {"host", plan.host_bytes},
  };
  constexpr size_t kBarColumn = 28;
  const auto bar_columns = static_cast<unsigned>(
      std::clamp<size_t>(resultColumns(), kBarColumn, kBarColumn + 32) - kBarColumn);
  std::string text;
  for (const auto& row : rows) {
    if (&row == &rows[0] && plan.weights_unknown != 0) {
      text += formatted("  %-12s%12s\n", row.name, "not known");
      continue;
    }
    const double share = plan.total_bytes == 0 ? 0
                                               : static_cast<double>(row.bytes) /
                                                     static_cast<double>(plan.total_bytes);
    text += formatted("  %-12s%12s  ", row.name, formatSize(row.bytes).c_str()) +
            bar(share, bar_columns) + "\n";
  }
  if (plan.constraint_bytes != 0) {
    text += formatted("  %-12s%12s  of host, for schemas and grammars\n", "",
                      formatSize(plan.constraint_bytes).c_str());
  }
  text += formatted("  %-12s%12s  (%llu bytes)\n", plan.weights_unknown != 0 ? "the rest" : "total",
                    formatSize(plan.total_bytes).c_str(),
                    static_cast<unsigned long long>(plan.total_bytes));
  return text + (plan.on_file_bytes != 0
                     ? formatted("  %-12s%12s  read when tokens need it, never held as a whole\n",
                                 "on file", formatSize(plan.on_file_bytes).c_str())
                     : "");
}

/// Which experts are where, and what that costs.
std::string recallText(const oriel_plan& plan) {
  if (plan.recall_tokens == 0) {
    return "  recall      not in this model: what left the window is gone\n";
  }
  return "  recall      " + std::to_string(plan.recall_file_tokens) +
         " tokens that left the window, in a file of up to " + formatSize(plan.recall_file_bytes) +
         ";\n              " + std::to_string(plan.recall_tokens) +
         " of them come back at a time, in " + formatSize(plan.recall_memory_bytes) +
         " with the index\n";
}

std::string draftText(const oriel_plan& plan) {
  return plan.draft_tokens != 0
             ? "up to " + std::to_string(plan.draft_tokens) + " guesses a step, in " +
                   formatSize(plan.draft_bytes) +
                   (plan.draft_weights_bytes != 0
                        ? ", and a model of " + formatSize(plan.draft_weights_bytes) +
                              " of the weights"
                        : "")
             : "none: not in plans of states, several sessions or experts on file";
}

std::string expertLines(const oriel_plan& plan) {
  if (plan.expert_slots == 0) {
    return "";
  }
  std::string text = formatted(
      "  experts     %u of %u have room in each layer, where a token is expected to find %.0f %% "
      "of its "
      "own\n",
      plan.expert_slots, plan.expert_count, 100 * plan.expert_hit_rate);
  return plan.file_s > 0
             ? text + formatted("              reading the others takes %.0f ms a token\n",
                                1e3 * plan.file_s)
             : text;
}

bool sharesWindow(const oriel_plan& plan) {
  return std::any_of(std::begin(plan.window_shares), std::end(plan.window_shares),
                     [](uint8_t share) { return share != 0; });
}

std::string why(const oriel_plan& plan, const oriel_options& options) {
  if (!plannedFits(plan)) {
    return "the smallest plan with these options; it needs more than was given";
  }
  const uint32_t trained = plan.context_train_tokens;
  const bool is_chosen = options.window_tokens == 0 || options.window_tokens == ORIEL_WINDOW_MAX;
  if (const uint32_t beyond = beyondTrained(plan); beyond != 0) {
    return "the window was given, " + std::to_string(beyond) + " tokens more than the " +
           std::to_string(trained) + " that the model was\n              trained on: replies get " +
           "worse there";
  }
  if (!is_chosen) {
    return "the window was given";
  }
  if (trained != 0 && plan.sink_tokens + plan.window_tokens >= trained) {
    return "the model was trained on " + std::to_string(trained) + " tokens, and all of them fit";
  }
  if (options.window_tokens == 0 && plan.window_tokens == ORIEL_WINDOW_DEFAULT) {
    return "the default; --window max for more of the " + std::to_string(trained) +
           " tokens that\n              the model was trained on";
  }
  // A token more is rounded up in every layer.
  const bool more_fits = plan.memory_bytes - plan.total_bytes > 2 * plan.kv_bytes_per_token + 4096;
  if (more_fits && sharesWindow(plan)) {
    return "the longest window that measurements of these layers speak of";
  }
  return "the longest window that fits; another token costs " + formatSize(plan.kv_bytes_per_token);
}

bool isChosen(const oriel_plan& plan, const oriel_plan_choice& choice) {
  return choice.k_format == plan.k_format && choice.v_format == plan.v_format;
}

uint32_t bitsOf(oriel_kv_format format) {
  return format == ORIEL_KV_F16 ? 16 : format == ORIEL_KV_INT8 ? 8 : 4;
}

/// Why one pair of formats was or was not taken.
std::string verdict(const oriel_plan& plan, const oriel_plan_choice& choice) {
  if (choice.refused == ORIEL_REFUSED_QUALITY) {
    return "never chosen: it failed the calibration of this model";
  }
  if (choice.refused == ORIEL_REFUSED_SPEED) {
    return "slower than was asked for";
  }
  if (!plannedFits(plan, choice)) {
    return formatted("does not fit: %llu bytes short",
                     static_cast<unsigned long long>(leastOf(plan, choice) - plan.memory_bytes));
  }
  if (isChosen(plan, choice)) {
    return "chosen: the least expected loss";
  }
  const std::string cost = formatted("%.4f worse: ", choice.loss_nats - plan.loss_nats);
  const bool finer = bitsOf(choice.k_format) + bitsOf(choice.v_format) >
                     bitsOf(plan.k_format) + bitsOf(plan.v_format);
  const std::string formats = finer ? "finer" : "coarser";
  if (choice.window_tokens == plan.window_tokens) {
    return cost + formats + ", with the same window";
  }
  if (choice.window_tokens > plan.window_tokens) {
    return cost + formats +
           formatted(finer ? ", and %u tokens more" : ", for %u tokens more",
                     choice.window_tokens - plan.window_tokens);
  }
  return cost + formats +
         formatted(finer ? ", but %u tokens less" : ", and %u tokens less",
                   plan.window_tokens - choice.window_tokens);
}

/// In each layer; 0: there are none.
uint32_t heldExperts(const oriel_plan& plan) {
  return plan.expert_slots != 0 ? plan.expert_slots : plan.expert_count;
}

std::string choiceTable(const oriel_plan& plan) {
  std::string text = "  formats     " + formatted("%10s  %8s", "window", "loss") + "\n";
  for (uint32_t i = 0; i < plan.choice_count; ++i) {
    const oriel_plan_choice& choice = plan.choices[i];
    const std::string name = formatsName(choice.k_format, choice.v_format);
    const bool chosen = plannedFits(plan) && isChosen(plan, choice);
    text += formatted("  %c %-10s%10u  %8.4f  %s\n", chosen ? '>' : ' ', name.c_str(),
                      choice.window_tokens, choice.loss_nats, verdict(plan, choice).c_str());
  }
  return text;
}

std::string neighbourTable(const oriel_plan& plan, const std::vector<Neighbour>& neighbours) {
  std::string text = "  memory      " + formatted("%10s  %8s", "window", "loss") + "\n";
  const auto row = [&](uint64_t memory, const oriel_plan& other, bool given) {
    const std::string size = formatSize(memory);
    if (!plannedFits(other)) {
      const uint64_t least = other.weights_unknown != 0 ? other.total_bytes : other.minimum_bytes;
      return formatted("  %c %-10s%10s  %8s  does not fit: %llu bytes short\n", given ? '>' : ' ',
                       size.c_str(), "-", "-", static_cast<unsigned long long>(least - memory));
    }
    std::string verdict = formatsName(other.k_format, other.v_format);
    if (given) {
      verdict += ", as given";
    } else if (!plannedFits(plan)) {
      verdict += formatted(", %s more than given", formatSize(memory - plan.memory_bytes).c_str());
    } else if (other.total_bytes == plan.total_bytes && other.loss_nats >= plan.loss_nats) {
      verdict += memory < plan.memory_bytes ? ", enough for the same" : ", nothing more to gain";
    } else if (heldExperts(other) != heldExperts(plan) && other.loss_nats == plan.loss_nats) {
      verdict += formatted(", the same loss, %u of %u experts held", heldExperts(other),
                           plan.expert_count);
    } else if (memory < plan.memory_bytes && other.loss_nats < plan.loss_nats) {
      verdict += formatted(", %.4f better: windows by layer", plan.loss_nats - other.loss_nats);
    } else if (memory < plan.memory_bytes) {
      verdict +=
          formatted(", %s less cost %.4f nats", formatSize(plan.memory_bytes - memory).c_str(),
                    other.loss_nats - plan.loss_nats);
    } else if (other.loss_nats > plan.loss_nats) {
      verdict += ", in every layer: exact until it is full";
    } else {
      verdict += formatted(", %s more would save %.4f nats",
                           formatSize(memory - plan.memory_bytes).c_str(),
                           plan.loss_nats - other.loss_nats);
    }
    return formatted("  %c %-10s%10u  %8.4f  %s\n", given ? '>' : ' ', size.c_str(),
                     other.window_tokens, other.loss_nats, verdict.c_str());
  };
  bool given_shown = false;
  for (const Neighbour& neighbour : neighbours) {
    if (!given_shown && neighbour.memory_bytes > plan.memory_bytes) {
      text += row(plan.memory_bytes, plan, true);
      given_shown = true;
    }
    text += row(neighbour.memory_bytes, neighbour.plan, false);
  }
  return text;
}

uint64_t kvBytesPerToken(const char* name, oriel_kv_format k, oriel_kv_format v,
                         uint64_t* sliding_bytes) {
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.memory_bytes = 1;
  options.k_format = k;
  options.v_format = v;
  oriel_plan plan = {};
  const bool possible = PlanSource::ofShape(name, ORIEL_WEIGHTS_DEFAULT).tryPlan(options, &plan);
  *sliding_bytes = possible ? slidingLayers(plan.groups, plan.group_count).bytes : 0;
  return possible ? plan.kv_bytes_per_token : 0;
}

std::string groupLine(const oriel_plan& plan, const oriel_layer_group& group) {
  const std::string layers = std::to_string(group.layers) + " layers ";
  const std::string window = std::to_string(group.window_tokens);
  const std::string bytes = formatSize(group.bytes) + (plan.sessions > 1 ? " a session" : "");
  switch (group.kind) {
    case ORIEL_LAYERS_SESSION:
      return "              " + std::to_string(group.layers) +
             (group.layers == 1 ? " layer sees" : " layers see") + " the last " + window +
             " tokens, by calibration\n";
    case ORIEL_LAYERS_SLIDING:
      return "  sliding     " + layers + "see the last " + window + " tokens and hold " + bytes +
             " when full\n";
    case ORIEL_LAYERS_CONVOLUTION:
      return "  convolve    " + layers + "need the last " + window + " tokens and hold " + bytes +
             "\n";
    case ORIEL_LAYERS_STATE:
      return "  state       " + layers + "keep a state of " + formatSize(group.bytes_per_token) +
             " in " + std::to_string(group.ring_tokens) + " slots, " + bytes + " in " +
             stateFormatName(plan.state_format) + "\n";
  }
  return "";
}

/// Numbers of the layers whose bit is set.
std::vector<uint32_t> layersOf(const uint64_t (&bits)[8]) {
  std::vector<uint32_t> layers;
  for (uint32_t layer = 0; layer < 512; ++layer) {
    if ((bits[layer / 64] >> (layer % 64) & 1) != 0) {
      layers.push_back(layer);
    }
  }
  return layers;
}

std::string layerList(const uint64_t (&bits)[8]) {
  std::string text;
  for (const uint32_t layer : layersOf(bits)) {
    text += (text.empty() ? "" : ", ") + std::to_string(layer);
  }
  return text;
}

constexpr struct {
  const char* field;
  oriel_kv_format k;
  oriel_kv_format v;
} kListed[] = {{"f16", ORIEL_KV_F16, ORIEL_KV_F16},
               {"k8v8", ORIEL_KV_INT8, ORIEL_KV_INT8},
               {"k8v4", ORIEL_KV_INT8, ORIEL_KV_INT4},
               {"k4v4", ORIEL_KV_INT4, ORIEL_KV_INT4}};

std::vector<uint64_t> depthsOf(const oriel_plan& plan) {
  const uint64_t full = uint64_t{plan.sink_tokens} + plan.window_tokens;
  std::vector<uint64_t> depths;
  for (const uint64_t depth : {64, 256, 1024, 4096, 16384, 65536}) {
    if (depth < full) {
      depths.push_back(depth);
    }
  }
  depths.push_back(full);
  return depths;
}

/// As predictedFields, with the window full, and for several depths.
Json planPredictions(const oriel_plan& plan, const oriel_speed* speed) {
  const std::vector<uint64_t> depths = depthsOf(plan);
  Json json = predictedFields(plan, {static_cast<double>(depths.back()), 0, 0});
  json["device"] = speed != nullptr ? Json(speed->device) : Json(nullptr);
  const bool known = plan.decode.tokens != 0;
  json["reason"] = known                       ? Json(nullptr)
                   : plan.weights_unknown != 0 ? Json("the weights of this model are not known")
                   : speed != nullptr && plan.expert_slots != 0
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

std::string speedTable(const oriel_plan& plan, const oriel_speed& speed) {
  Table table({{"depth"},
               {"decode tok/s", true},
               {"prefill tok/s", true, 1},
               {"decoding is limited by", false, 2}});
  for (const uint64_t depth : depthsOf(plan)) {
    oriel_prediction prediction;
    if (!predict(plan, depth, 0, &prediction)) {
      return plan.weights_unknown != 0
                 ? "  speed       not known: the weights of this model are not\n"
                 : "  speed       not known: how fast experts are read, only its file can tell\n";
    }
    table.row({std::to_string(depth), formatted("%.1f", prediction.decode_tokens_per_s),
               formatted("%.1f", prediction.prefill_tokens_per_s),
               limitName(prediction.decode_limit)});
  }
  std::string text = "  speed       predicted for " + oneLine(speed.device) + "\n" +
                     table.text(resultColumns(), 2);
  oriel_prediction prediction;
  if (predict(plan, 0, 0, &prediction) && prediction.crossover_tokens > 0) {
    text += formatted("  reading the cache takes as long as the weights at %.0f tokens\n",
                      prediction.crossover_tokens);
  }
  return text;
}

// Whether anything depends on the window.
bool hasAttention(const oriel_plan& plan) {
  bool found = plan.group_count == 0;
  for (uint32_t i = 0; i < plan.group_count; ++i) {
    const oriel_layer_kind kind = plan.groups[i].kind;
    found = found || (plan.groups[i].layers != 0 &&
                      (kind == ORIEL_LAYERS_SESSION || kind == ORIEL_LAYERS_SLIDING));
  }
  return found;
}

/// What several conversations take; nothing for one that begins with nothing.
std::string sessionLines(const oriel_plan& plan) {
  std::string text;
  if (plan.sessions > 1) {
    const std::set<uint32_t> windows(plan.session_windows, plan.session_windows + plan.sessions);
    std::string each = " tokens";
    for (uint32_t i = windows.size() == 1 ? 1 : plan.sessions; i-- > 0;) {
      each = (i > 0 ? ", " : "") + std::to_string(plan.session_windows[i]) + each;
    }
    text += "  sessions    " + std::to_string(plan.sessions) + " with " +
            (windows.size() == 1 ? "a window of " : "windows of ") + each +
            (windows.size() == 1 ? " each" : "") + "; one more takes " +
            formatSize(plan.session_bytes) + "\n";
  }
  if (plan.prefix_tokens != 0) {
    text += "  prefix      " + std::to_string(plan.prefix_tokens) + " tokens in f16, " +
            formatSize(plan.prefix_bytes) + (plan.sessions > 1 ? ", held once for all\n" : "\n");
  }
  if (plan.transcript_bytes != 0) {
    text += "  transcript  " + formatSize(plan.transcript_bytes) +
            " of host, for the text of messages\n";
  }
  return text;
}

Json sessionFields(const oriel_plan& plan) {
  Json json;
  json["sessions"] = plan.sessions;
  json["session_windows"] = std::vector<uint32_t>(
      plan.session_windows,
      plan.session_windows + std::min<size_t>(plan.sessions, std::size(plan.session_windows)));
  json["session_bytes"] = plan.session_bytes;
  json["prefix_tokens"] = plan.prefix_tokens;
  json["prefix_bytes"] = plan.prefix_bytes;
  json["transcript_bytes"] = plan.transcript_bytes;
  return json;
}

// By oriel_trim_level.
constexpr const char* kTrimLevels[] = {"none", "scratch", "weights", "cache", "all"};

/// What stays when memory is given back.
std::string trimLines(const oriel_plan& plan) {
  const auto size = [&](oriel_trim_level level) { return formatSize(plan.trim_bytes[level]); };
  return "  given back  " + size(ORIEL_TRIM_SCRATCH) + " stay without scratch, " +
         size(ORIEL_TRIM_WEIGHTS) + " without weights, " + size(ORIEL_TRIM_CACHE) +
         " without the cache\n";
}

Json trimJson(const oriel_plan& plan) {
  Json levels = Json::array();
  for (size_t level = 0; level < std::size(kTrimLevels); ++level) {
    Json entry;
    entry["level"] = kTrimLevels[level];
    entry["bytes"] = plan.trim_bytes[level];
    levels.push_back(entry);
  }
  return levels;
}

}  // namespace

std::vector<Neighbour> neighboursOf(const PlanSource& source, const oriel_options& options,
                                    const oriel_plan& plan) {
  std::vector<Neighbour> neighbours;
  for (const uint64_t quarters : {2, 3, 6, 8}) {
    Neighbour neighbour;
    const uint64_t quarter = plan.memory_bytes / 4;
    if (quarter > UINT64_MAX / quarters) {
      continue;
    }
    neighbour.memory_bytes = quarter * quarters;
    oriel_options other = options;
    other.memory_bytes = neighbour.memory_bytes;
    if (neighbour.memory_bytes != 0 && source.tryPlan(other, &neighbour.plan)) {
      neighbours.push_back(neighbour);
    }
  }
  return neighbours;
}

std::string describePlan(const PlanSource& source, const oriel_options& options,
                         const oriel_plan& plan, const std::vector<Neighbour>& neighbours) {
  const std::string memory = formatSize(plan.memory_bytes);
  std::string text =
      plan.weights_unknown != 0
          ? "whether " + source.title() + " fits in " + memory + " is not known"
          : source.title() + (plan.fits != 0 ? " fits in " : " does not fit in ") + memory;
  text += "\n\n" + bytesByPurpose(plan);
  text += "\n";
  const bool attends = hasAttention(plan);
  if (!attends) {
    text += "  window      none, no layer attends: states follow from all tokens; " +
            std::to_string(plan.window_tokens) +
            " are\n              kept as ids, for going back\n";
  } else {
    text += "  window      the last " + std::to_string(plan.window_tokens) +
            " tokens and the first " + std::to_string(plan.sink_tokens) + " (sinks)\n";
    text += "  cache       " + formatsName(plan.k_format, plan.v_format) + ": keys " +
            kvFormatName(plan.k_format) + ", values " + kvFormatName(plan.v_format) + ", " +
            formatSize(plan.kv_bytes_per_token) + " a token\n";
  }
  text += sessionLines(plan);
  for (uint32_t i = 1; i < plan.group_count; ++i) {
    text += groupLine(plan, plan.groups[i]);
  }
  if (plan.state_slots != 0) {
    text += plan.checkpoints != 0 ? "  checkpoints " + std::to_string(plan.checkpoints) +
                                        " of the slots, to go back to without reading all again\n"
                                  : "  checkpoints none: going back reads the conversation again\n";
  }
  text += expertLines(plan);
  if (plan.activation_bits == 8) {
    text += "  activations 8 bits on the CPU: faster prompts, less exact\n";
  }
  if (options.draft_tokens != 0 || plan.draft_weights_bytes != 0) {
    text += "  drafts      " + draftText(plan) + "\n";
  }
  if (options.recall_bytes != 0) {
    text += recallText(plan);
  }
  const std::string biased = layerList(plan.raised_by_bias);
  const std::string wide = layerList(plan.raised_by_norm);
  if (!biased.empty()) {
    text += "  guards      extreme key biases: more bits for layers " + biased + "\n";
  }
  if (!wide.empty()) {
    text += "  guards      wide key norms: more bits for layers " + wide + "\n";
  }
  if (attends) {
    text += "  why         " + why(plan, options) + "\n";
    text += formatted("  loss        %.4f nats a token, expected by %s\n", plan.loss_nats,
                      plan.calibrated != 0 ? "measurements of this model" : "published priors");
    text += plan.loss_nats < 0
                ? "              (below 0: with less to see some layers did better)\n"
                : "";
  }
  if (plan.weights_unknown != 0) {
    text += "  weights     not described here: the memory is planned for the rest\n";
  } else {
    text += "  least       " + formatSize(plan.minimum_bytes) + " (" +
            std::to_string(plan.minimum_bytes) + " bytes)\n";
    text += trimLines(plan);
  }
  if (plan.crossover_tokens != 0) {
    text += "  crossover   at " + std::to_string(plan.crossover_tokens) +
            " tokens reading the cache costs as much as the weights\n";
  }
  if (options.speed != nullptr) {
    text += "\n" + speedTable(plan, *options.speed);
  }
  if (!attends) {
    return text;
  }
  text += "\n" + choiceTable(plan) + "\n" + neighbourTable(plan, neighbours);
  return text +
         "\n"
         "  loss: 0.01 nats a token make the right next token 1 % less likely.\n"
         "  K8V4: keys in 8 bits a number, values in 4; f16: 16 bits, the cache as it is.\n"
         "  Sinks: the session's first tokens; they stay when older ones are forgotten.\n";
}

Json planJson(const PlanSource& source, const oriel_plan& plan, const oriel_speed* speed,
              const std::vector<Neighbour>& neighbours) {
  Json json;
  if (source.isShape()) {
    json["arch"] = source.name();
  }
  json.update(planFields(plan));
  json.update(sessionFields(plan));
  json["kv_growth_bytes_per_token"] = plan.kv_bytes_per_token;
  const SlidingLayers sliding = slidingLayers(plan.groups, plan.group_count);
  json["kv_local_bytes"] = sliding.bytes;
  json["local_layers"] = sliding.layers;
  json["local_window_tokens"] = sliding.window_tokens;
  json["local_ring_tokens"] = sliding.ring_tokens;
  json["groups"] = groupsJson(plan.groups, plan.group_count, true);
  if (plan.state_bytes != 0) {
    json["state_slots"] = plan.state_slots;
    json["checkpoints"] = plan.checkpoints;
  }
  json["draft_tokens"] = plan.draft_tokens;
  json["draft_bytes"] = plan.draft_bytes;
  json["recall_tokens"] = plan.recall_tokens;
  json["recall_memory_bytes"] = plan.recall_memory_bytes;
  json["recall_file_bytes"] = plan.recall_file_bytes;
  json["recall_file_tokens"] = plan.recall_file_tokens;
  json["draft_weights_bytes"] = plan.draft_weights_bytes;
  json["trim_levels"] = trimJson(plan);
  json["raised_by_bias"] = layersOf(plan.raised_by_bias);
  json["raised_by_norm"] = layersOf(plan.raised_by_norm);
  json["kv_bytes_at"] = plan.kv_window_bytes;
  json["predicted"] = planPredictions(plan, speed);
  json["choices"] = Json::array();
  for (uint32_t i = 0; i < plan.choice_count; ++i) {
    const oriel_plan_choice& choice = plan.choices[i];
    Json entry;
    entry["k_format"] = kvFormatName(choice.k_format);
    entry["v_format"] = kvFormatName(choice.v_format);
    entry["chosen"] = plannedFits(plan) && isChosen(plan, choice);
    entry["fits"] = fitsField(plan, choice.fits != 0);
    entry["window_tokens"] = choice.window_tokens;
    entry["shortest_window_tokens"] = choice.shortest_window_tokens;
    entry["chunk_tokens"] = choice.chunk_tokens;
    entry["total_bytes"] = choice.total_bytes;
    entry["minimum_bytes"] = plan.weights_unknown == 0 ? Json(choice.minimum_bytes) : Json(nullptr);
    entry["loss_nats"] = choice.loss_nats;
    entry["decode_tokens_per_s"] =
        choice.decode_tokens_per_s > 0 ? Json(choice.decode_tokens_per_s) : Json(nullptr);
    entry["refused"] = choice.refused == ORIEL_REFUSED_QUALITY ? Json("quality")
                       : choice.refused == ORIEL_REFUSED_SPEED ? Json("speed")
                                                               : Json(nullptr);
    entry["why"] = verdict(plan, choice);
    json["choices"].push_back(entry);
  }
  json["alternatives"] = Json::array();
  for (const Neighbour& neighbour : neighbours) {
    Json entry;
    entry["memory_bytes"] = neighbour.memory_bytes;
    entry["fits"] = fitsField(neighbour.plan, neighbour.plan.fits != 0);
    entry["window_tokens"] = neighbour.plan.window_tokens;
    entry["k_format"] = kvFormatName(neighbour.plan.k_format);
    entry["v_format"] = kvFormatName(neighbour.plan.v_format);
    entry["total_bytes"] = neighbour.plan.total_bytes;
    entry["loss_nats"] = neighbour.plan.loss_nats;
    json["alternatives"].push_back(entry);
  }
  return json;
}

std::vector<oriel_shape_info> knownShapes() {
  size_t count = 0;
  (void)oriel_shape_list(nullptr, 0, &count);
  std::vector<oriel_shape_info> shapes(count);
  for (oriel_shape_info& shape : shapes) {
    shape.struct_size = sizeof(shape);
  }
  if (oriel_shape_list(shapes.data(), shapes.size(), &count) != ORIEL_OK) {
    shapes.clear();
  }
  return shapes;
}

std::string describeShapes(const std::vector<oriel_shape_info>& shapes) {
  // From 40 columns on there is room for the name and for what a token takes at the most and at the least.
  Table table({{"name"},
               {"layers", true, 5},
               {"heads", true, 4},
               {"context", true, 3},
               {"params", true, 1},
               {"f16", true},
               {"K8V4", true, 2},
               {"K4V4", true}});
  for (const oriel_shape_info& shape : shapes) {
    std::string bytes[4];
    uint64_t sliding[4];
    for (size_t i = 0; i < 4; ++i) {
      bytes[i] =
          std::to_string(kvBytesPerToken(shape.name, kListed[i].k, kListed[i].v, &sliding[i]));
    }
    std::string note;
    if (shape.latent_dim != 0) {
      note = formatted("one vector of %u values", shape.latent_dim);
    } else if (shape.sliding_layers != 0) {
      note = formatted("and %llu bytes in f16 for %u layers that see %u tokens",
                       static_cast<unsigned long long>(sliding[0]), shape.sliding_layers,
                       shape.sliding_window_tokens);
    } else if (shape.state_layers != 0) {
      note = formatted("and %llu bytes for the states of %u layers, in two versions",
                       static_cast<unsigned long long>(shape.state_bytes), shape.state_layers);
    } else if (shape.convolution_layers != 0) {
      note =
          formatted("and %llu bytes for %u layers of short convolutions",
                    static_cast<unsigned long long>(shape.state_bytes), shape.convolution_layers);
    }
    table.row(
        {shape.name, std::to_string(shape.n_layers),
         std::to_string(shape.n_heads) + "/" + std::to_string(shape.n_kv_heads) + "/" +
             std::to_string(shape.head_dim),
         std::to_string(shape.context_train),
         shape.parameters == 0 ? "?"
                               : formatted("%.2fB", static_cast<double>(shape.parameters) / 1e9),
         bytes[0], bytes[2], bytes[3]},
        note);
  }
  return table.text(resultColumns()) +
         "\nf16, K8V4 and K4V4 are bytes of cache a token; heads are query/KV/head_dim. "
         "`oriel plan --arch NAME --memory SIZE` plans for one; where params are ? the weights are "
         "not "
         "described, and it cannot say whether the model fits.\n";
}

Json shapesJson(const std::vector<oriel_shape_info>& shapes) {
  Json json;
  json["shapes"] = Json::array();
  for (const oriel_shape_info& shape : shapes) {
    Json entry;
    entry["name"] = shape.name;
    entry["architecture"] = shape.architecture;
    entry["n_layers"] = shape.n_layers;
    entry["n_heads"] = shape.n_heads;
    entry["n_kv_heads"] = shape.n_kv_heads;
    entry["head_dim"] = shape.head_dim;
    entry["n_embd"] = shape.n_embd;
    entry["n_ff"] = shape.n_ff;
    entry["n_vocab"] = shape.n_vocab;
    entry["context_train"] = shape.context_train;
    entry["local_layers"] = shape.sliding_layers;
    entry["local_window_tokens"] = shape.sliding_window_tokens;
    entry["shared_layers"] = shape.shared_layers;
    entry["latent_dim"] = shape.latent_dim;
    entry["convolution_layers"] = shape.convolution_layers;
    entry["state_layers"] = shape.state_layers;
    entry["state_bytes"] = shape.state_bytes;
    entry["n_experts"] = shape.n_experts;
    entry["n_experts_used"] = shape.n_experts_used;
    entry["parameters"] = shape.parameters == 0 ? Json(nullptr) : Json(shape.parameters);
    Json bytes;
    for (const auto& listed : kListed) {
      uint64_t local = 0;
      const uint64_t growth = kvBytesPerToken(shape.name, listed.k, listed.v, &local);
      bytes[listed.field] = growth == 0 ? Json(nullptr) : Json(growth);
    }
    entry["kv_bytes_per_token"] = bytes;
    json["shapes"].push_back(entry);
  }
  return json;
}

}  // namespace cli
