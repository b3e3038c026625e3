#include <algorithm>
#include <cmath>
#include <string>

#include "plan/chart.h"
#include "plan/sweep.h"
#include "system.h"

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

namespace {

constexpr double kSweepWidth = 1160;
constexpr double kSweepHeight = 440;
constexpr double kTop = 112;
constexpr double kPanelWidth = 300;
constexpr double kPanelHeight = 250;
constexpr double kLeft = 74;
constexpr double kPanelStep = 374;
constexpr double kDotRadius = 3.5;
constexpr double kHeadRoom = 1.08;

struct Series {
  const char* colour;
  std::vector<Point> measured;
  std::vector<Point> predicted;
};

/// The axes and lines of a picture; a sweep has three.
struct Panel {
  std::string title;
  std::string x_title;
  bool log_x = false;
  std::vector<Series> series;
};

std::vector<std::string> formatsOf(const Sweep& sweep) {
  std::vector<std::string> formats;
  for (const PredictedLine& line : sweep.lines) {
    formats.push_back(line.formats);
  }
  return formats;
}

Panel panelOf(const Sweep& sweep, SweepKind kind, bool decode) {
  Panel panel;
  for (const std::string& formats : formatsOf(sweep)) {
    Series series = {formatColour(formats), {}, {}};
    for (const SweepPoint& point : sweep.points) {
      if (point.kind != kind || point.formats != formats) {
        continue;
      }
      const double x = kind == SweepKind::kWindow ? std::log2(point.window_tokens)
                                                  : static_cast<double>(point.depth_tokens);
      series.measured.push_back(
          {x, decode ? point.decode_tokens_per_s : point.prefill_tokens_per_s});
      if (kind == SweepKind::kWindow && point.predicted_decode > 0) {
        series.predicted.push_back({x, point.predicted_decode});
      }
    }
    for (const PredictedLine& line : sweep.lines) {
      for (size_t i = 0;
           kind == SweepKind::kDepth && line.formats == formats && i < line.tokens.size(); ++i) {
        series.predicted.push_back({line.tokens[i], decode ? line.decode[i] : line.prefill[i]});
      }
    }
    const auto by_x = [](const Point& a, const Point& b) { return a.x < b.x; };
    std::sort(series.measured.begin(), series.measured.end(), by_x);
    std::sort(series.predicted.begin(), series.predicted.end(), by_x);
    panel.series.push_back(series);
  }
  return panel;
}

std::vector<Tick> ticksOf(const Panel& panel, double first, double last) {
  std::vector<Tick> ticks;
  const double step = panel.log_x ? 1 : niceStep(last - first, 5, 1);
  for (double at = std::ceil(first / step) * step; at <= last; at += step) {
    ticks.push_back({at, numberLabel(panel.log_x ? std::exp2(at) : at, 1)});
  }
  return ticks;
}

void drawPanel(const Panel& panel, double x, Svg* svg) {
  double first = 1e300;
  double last = -1e300;
  double most = 0;
  for (const Series& series : panel.series) {
    for (const auto* points : {&series.measured, &series.predicted}) {
      for (const Point& point : *points) {
        first = std::min(first, point.x);
        last = std::max(last, point.x);
        most = std::max(most, point.y);
      }
    }
  }
  const Point corner = {x, kTop};
  svg->text({x, kTop - 14}, panel.title, Svg::Anchor::kStart, 14, "#333", true);
  if (first > last) {
    svg->text({x + kPanelWidth / 2, kTop + kPanelHeight / 2}, "no time was left",
              Svg::Anchor::kMiddle, 13, kQuietColour);
    return;
  }
  const double margin = std::max((last - first) / 40, 1e-9);
  const Chart chart = {corner,         kPanelWidth,   kPanelHeight,
                       first - margin, last + margin, std::max(most, 1e-3) * kHeadRoom};
  chart.drawAxes(ticksOf(panel, first, last), panel.x_title, "tokens/s", 58, svg);
  for (const Series& series : panel.series) {
    if (!series.predicted.empty()) {
      svg->polyline(chart.at(series.predicted), {series.colour, 1.5, true});
    }
  }
  for (const Series& series : panel.series) {
    if (!series.measured.empty()) {
      svg->polyline(chart.at(series.measured), {series.colour, 2, false});
    }
    for (const Point& point : series.measured) {
      svg->dot(chart.at(point.x, point.y), kDotRadius, "#ffffff", series.colour);
    }
  }
}

/// The fastest format's speed at both depths: ": 350 tokens/s at depth 0, 120 at depth 4,096 (K8V8)".
std::string resultOf(const Sweep& sweep) {
  const SweepPoint* first = nullptr;
  for (const SweepPoint& point : sweep.points) {
    const bool better = first == nullptr || point.depth_tokens < first->depth_tokens ||
                        (point.depth_tokens == first->depth_tokens &&
                         point.decode_tokens_per_s > first->decode_tokens_per_s);
    if (point.kind == SweepKind::kDepth && better) {
      first = &point;
    }
  }
  if (first == nullptr) {
    return "";
  }
  const SweepPoint* last = first;
  for (const SweepPoint& point : sweep.points) {
    if (point.kind == SweepKind::kDepth && point.formats == first->formats &&
        point.depth_tokens > last->depth_tokens) {
      last = &point;
    }
  }
  const auto at = [](const SweepPoint& point, const char* unit) {
    return numberLabel(point.decode_tokens_per_s, point.decode_tokens_per_s < 10 ? 0.1 : 1) + unit +
           " at depth " + grouped(point.depth_tokens);
  };
  return ": " + at(*first, " tokens/s") + (last == first ? "" : ", " + at(*last, "")) + " (" +
         first->formats + ")";
}

}  // namespace

std::string plotSweep(const Sweep& sweep) {
  Svg svg(kSweepWidth, kSweepHeight);
  svg.text({kLeft, 34}, sweep.model + " on " + sweep.device + resultOf(sweep), Svg::Anchor::kStart,
           18, kStrongColour, true);
  Legend legend({kLeft, 62}, &svg);
  for (const std::string& formats : formatsOf(sweep)) {
    legend.line(formats, {formatColour(formats), 3, false});
  }
  legend.dot("measured", "#ffffff", kStrongColour);
  legend.line("predicted", {kStrongColour, 1.5, true});

  Panel decode = panelOf(sweep, SweepKind::kDepth, true);
  decode.title = "Decoding";
  Panel prefill = panelOf(sweep, SweepKind::kDepth, false);
  prefill.title = "Reading a prompt";
  decode.x_title = prefill.x_title = "depth, tokens (window " + grouped(sweep.deepest) + " tokens)";
  Panel window = panelOf(sweep, SweepKind::kWindow, true);
  window.title = "Decoding, window full";
  window.x_title = "window, tokens";
  window.log_x = true;
  double x = kLeft;
  for (const Panel* panel : {&decode, &prefill, &window}) {
    drawPanel(*panel, x, &svg);
    x += kPanelStep;
  }
  return svg.document();
}

}  // namespace cli
