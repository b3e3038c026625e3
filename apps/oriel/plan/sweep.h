// Predictions for a loaded model from device rates, and the bytes it moves.
#pragma once

#include <string>
#include <vector>

#include <oriel/tools.h>

#include "model_handle.h"
#include "options.h"
#include "output.h"

namespace cli {

/// The plan of the loaded model with predictions for `speed`.
Json predictedPlan(const Json& loaded, const CommonOptions& options, const oriel_speed& speed);

/// Smallest number of bytes to move per step: reads the weights once, reads the visible keys and values once, and writes
/// the keys and values of the new tokens. At `depth` tokens, limited by the window.
double decodeBytes(const Json& plan, double depth);
/// For a prompt of that many tokens in chunks, including the last token's logits.
double prefillBytes(const Json& plan, double depth, uint32_t prompt_tokens);

// `oriel bench --sweep`: speed against depth, window and cache formats.

enum class SweepKind { kDepth, kWindow };

/// One measured point with its prediction.
struct SweepPoint {
  SweepKind kind = SweepKind::kDepth;
  std::string formats;  ///< "K8V4"
  uint32_t window_tokens = 0;
  uint64_t depth_tokens = 0;
  uint32_t prompt_tokens = 0;
  uint32_t generated_tokens = 0;
  uint64_t total_bytes = 0;
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  double predicted_prefill = 0;  ///< tokens/s; 0: unknown
  double predicted_decode = 0;
  double prefill_bytes_per_token = 0;
  double decode_bytes_per_token = 0;
};

/// A line of predictions: tokens/s over depth.
struct PredictedLine {
  SweepKind kind = SweepKind::kDepth;
  std::string formats;
  std::vector<double> tokens;
  std::vector<double> prefill;
  std::vector<double> decode;
};

struct Sweep {
  std::string model;  ///< the file's name
  std::string device;
  double read_bytes_per_s = 0;
  uint32_t deepest = 0;
  uint32_t planned = 0;  ///< planned number of points
  std::vector<SweepPoint> points;
  std::vector<PredictedLine> lines;
  bool interrupted = false;  ///< by Ctrl-C: only the results until then
};

struct SweepOptions {
  std::string stem;  ///< .csv and .svg are appended
  double seconds = 180;
  uint32_t prefill = 64;  ///< most tokens per point
  uint32_t decode = 64;
};

std::string sweepCsvHeader();
std::string sweepCsvRow(const SweepPoint& point, double read_bytes_per_s);

/// Measures, updates the CSV as results arrive, and draws the results so far, even after Ctrl-C and failures.
Sweep runSweep(const CommonOptions& common, const SweepOptions& options);

/// An SVG document.
std::string plotSweep(const Sweep& sweep);

}  // namespace cli
