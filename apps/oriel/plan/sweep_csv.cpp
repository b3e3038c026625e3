#include <algorithm>
#include <string>

#include "plan/sweep.h"

namespace cli {
namespace {

std::string orEmpty(double value) { return value > 0 ? formatted("%.3f", value) : ""; }

}  // namespace

std::string sweepCsvHeader() {
  return "sweep,kv,window_tokens,depth_tokens,prompt_tokens,generated_tokens,total_bytes,"
         "prefill_tokens_per_s,predicted_prefill_tokens_per_s,prefill_bytes_per_token,"
         "prefill_bandwidth_share,decode_tokens_per_s,predicted_decode_tokens_per_s,"
         "decode_bytes_per_token,decode_bandwidth_share\n";
}

std::string sweepCsvRow(const SweepPoint& point, double read_bytes_per_s) {
  const auto share = [&](double tokens_per_s, double bytes_per_token) {
    return orEmpty(read_bytes_per_s > 0 ? tokens_per_s * bytes_per_token / read_bytes_per_s : 0);
  };
  std::string kv = point.formats;
  std::transform(kv.begin(), kv.end(), kv.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return formatted("%s,%s,%u,%llu,%u,%u,%llu,",
                   point.kind == SweepKind::kDepth ? "depth" : "window", kv.c_str(),
                   point.window_tokens, static_cast<unsigned long long>(point.depth_tokens),
                   point.prompt_tokens, point.generated_tokens,
                   static_cast<unsigned long long>(point.total_bytes)) +
         orEmpty(point.prefill_tokens_per_s) + "," + orEmpty(point.predicted_prefill) + "," +
         formatted("%.0f,", point.prefill_bytes_per_token) +
         share(point.prefill_tokens_per_s, point.prefill_bytes_per_token) + "," +
         orEmpty(point.decode_tokens_per_s) + "," + orEmpty(point.predicted_decode) + "," +
         formatted("%.0f,", point.decode_bytes_per_token) +
         share(point.decode_tokens_per_s, point.decode_bytes_per_token) + "\n";
}

}  // namespace cli
