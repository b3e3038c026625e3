#include "serve/llama_cpp/infill.h"

#include <utility>

#include "serve/request_fields.h"

namespace cli {
namespace {

constexpr size_t kMostFiles = 256;
constexpr char kOnlyReads[] = "only_reads";

std::vector<OtherFile> readFiles(const Fields& fields) {
  std::vector<OtherFile> files;
  const Json* const list = fields.find("input_extra");
  if (list != nullptr && (!list->is_array() || list->size() > kMostFiles)) {
    throw wrongField("input_extra", "a list of files");
  }
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Fields file((*list)[i], "input_extra[" + std::to_string(i) + "]");
    files.push_back({file.text("filename").value_or("file"), file.text("text").value_or("")});
  }
  return files;
}

class InfillWriter : public ReplyWriter {
 public:
  explicit InfillWriter(const ReplyContext& context)
      : context_(context), only_reads_(context.request.echo.contains(kOnlyReads)) {}

  ReplySink sinkFor(uint32_t) override {
    return {[](const oriel_part&) { return true; },
            [this](const oriel_token_event& event) { return take(event); }};
  }
  void endChoice(const ReplyOutcome& outcome, bool) override;
  void end() override;
  void endWith(const ApiError& error) override { sendEvent(errorJson(error)); }

 private:
  bool take(const oriel_token_event& event) {
    const std::string text(event.text, event.text_bytes);
    if (only_reads_ || text.empty() || !context_.request.stream) {
      return true;
    }
    return sendEvent({{"index", 0}, {"content", text}, {"stop", false}});
  }
  bool sendEvent(const Json& event) {
    Exchange* const exchange = context_.exchange;
    return (exchange->begun() || exchange->beginStream(kEventStream)) &&
           exchange->write("data: " + dumped(event) + "\n\n");
  }

  const ReplyContext context_;
  const bool only_reads_;
  Json last_;
};

Json timingsOf(const ReplyOutcome& outcome, uint32_t tokens) {
  const auto perSecond = [](double count, double ms) { return ms > 0 ? count * 1000 / ms : 0; };
  const double read = outcome.result.prompt_tokens;
  const double read_ms = outcome.result.time_to_first_token_ms;
  const double rate = outcome.result.decode_tokens_per_s;
  const double written_ms = rate > 0 && tokens > 1 ? (tokens - 1) * 1000 / rate : 0;
  Json timings;
  timings["prompt_n"] = outcome.result.prompt_tokens;
  timings["prompt_ms"] = read_ms;
  timings["prompt_per_token_ms"] = read > 0 ? read_ms / read : 0;
  timings["prompt_per_second"] = perSecond(read, read_ms);
  timings["predicted_n"] = tokens;
  timings["predicted_ms"] = written_ms;
  timings["predicted_per_token_ms"] = tokens > 1 ? written_ms / (tokens - 1) : 0;
  timings["predicted_per_second"] = rate;
  return timings;
}

void InfillWriter::endChoice(const ReplyOutcome& outcome, bool) {
  const uint32_t tokens = only_reads_ ? 0 : outcome.result.tokens;
  last_["index"] = 0;
  last_["content"] = context_.request.stream || only_reads_ ? std::string() : outcome.parts.text;
  last_["stop"] = true;
  last_["model"] = context_.model_name;
  last_["tokens_predicted"] = tokens;
  last_["tokens_evaluated"] = outcome.prompt_tokens;
  last_["tokens_cached"] = outcome.cached_tokens;
  last_["truncated"] = outcome.evicted != 0;
  last_["stop_type"] = reachedLength(outcome)                          ? "limit"
                       : outcome.result.stop_reason == ORIEL_STOP_TEXT ? "word"
                                                                       : "eos";
  last_["timings"] = timingsOf(outcome, tokens);
  last_["oriel"] = extraOf(context_.request, outcome);
}

void InfillWriter::end() {
  if (!context_.request.stream) {
    context_.exchange->send(200, kJsonType, dumped(last_));
    return;
  }
  sendEvent(last_);
  context_.exchange->endStream();
}

}  // namespace

ReplyRequest readInfillRequest(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  ReplyRequest request;
  request.is_chat = false;
  Gap gap;
  // The prompt is text typed since the prefix: it comes directly before the gap.
  gap.prefix = fields.text("input_prefix").value_or("") + fields.text("prompt").value_or("");
  gap.suffix = fields.text("input_suffix").value_or("");
  gap.others = readFiles(fields);
  request.prompts.emplace_back();
  request.prompts.back().gap = std::move(gap);
  request.stream = fields.boolean("stream").value_or(false);
  // only fills the cache with the prompt
  if (fields.whole("n_predict", -1, kMostReplyTokens) == 0) {
    request.max_tokens = 1;
    request.echo[kOnlyReads] = true;
  } else {
    request.max_tokens = readMostTokens(fields, "n_predict");
  }
  readSampling(fields, &request);
  readStop(fields, "stop", &request);
  return request;
}

std::unique_ptr<ReplyWriter> writeInfill(const ReplyContext& context) {
  return std::make_unique<InfillWriter>(context);
}

}  // namespace cli
