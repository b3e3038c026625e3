#include "plan_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "sizes.h"
#include "svg.h"

namespace cli {
namespace {

constexpr double kWidth = 1040;
constexpr double kHeight = 500;
constexpr Point kPlot = {92, 96};  // upper left corner of the axes
constexpr double kPlotWidth = 500;
constexpr double kPlotHeight = 320;
constexpr double kBarsX = 720;
constexpr double kBarsWidth = 190;
constexpr int kSamples = 64;
constexpr const char* kAxis = "#888888";
constexpr const char* kGrid = "#e6e6e6";
constexpr const char* kQuiet = "#666666";
constexpr const char* kChosen = "#111111";

struct Curve {
  std::string name;
  const char* colour;
  oriel_kv_format k;
  oriel_kv_format v;
  std::vector<Point> points;  // bytes, tokens
};

/// Colours that people who see red and green alike can tell apart.
std::vector<Curve> curvesOf(const oriel_plan& plan) {
  static const char* const kColours[] = {"#d55e00", "#0072b2", "#009e73", "#cc79a7"};
  std::vector<Curve> curves;
  for (uint32_t i = 0; i < plan.choice_count; ++i) {
    const oriel_plan_choice& choice = plan.choices[i];
    curves.push_back({formatsName(choice.k_format, choice.v_format), kColours[i], choice.k_format,
                      choice.v_format, {}});
  }
  return curves;
}

void addPoints(const oriel_plan& plan, uint64_t memory_bytes, std::vector<Curve>* curves) {
  for (uint32_t i = 0; i < plan.choice_count && i < curves->size(); ++i) {
    const oriel_plan_choice& choice = plan.choices[i];
    if (choice.fits != 0) {
      (*curves)[i].points.push_back(
          {static_cast<double>(memory_bytes), static_cast<double>(choice.window_tokens)});
    }
  }
}

struct Ranges {
  double first_bytes = 0;
  double last_bytes = 0;
  double most_tokens = 0;

  double x(double bytes) const {
    return kPlot.x + (bytes - first_bytes) / (last_bytes - first_bytes) * kPlotWidth;
  }
  double y(double tokens) const {
    return kPlot.y + kPlotHeight - tokens / most_tokens * kPlotHeight;
  }
};

/// Around the memory given, as far as more of it changes anything.
Ranges rangesOf(const oriel_plan& open, const oriel_plan& everything, uint64_t memory_bytes) {
  double least = static_cast<double>(open.choices[0].minimum_bytes);
  double enough = 0;
  for (uint32_t i = 0; i < open.choice_count; ++i) {
    least = std::min(least, static_cast<double>(open.choices[i].minimum_bytes));
    enough = std::max(enough, static_cast<double>(everything.choices[i].total_bytes));
  }
  const double given = static_cast<double>(memory_bytes);
  Ranges ranges;
  ranges.first_bytes = std::min(least, given);
  ranges.last_bytes = std::min(enough, std::max(given, least) * 2 - ranges.first_bytes);
  ranges.last_bytes = std::max(ranges.last_bytes, ranges.first_bytes + (enough - least) / 16);
  const double margin = (ranges.last_bytes - ranges.first_bytes) / 24 + 1;
  ranges.first_bytes = std::max(0.0, ranges.first_bytes - margin);
  ranges.last_bytes += margin;
  return ranges;
}

std::string shortSize(double bytes) {
  std::string text = formatSize(static_cast<uint64_t>(bytes + 0.5));
  const size_t zero = text.find(".0 ");
  return zero == std::string::npos ? text : text.erase(zero, 2);
}

void drawAxes(const Ranges& ranges, Svg* svg) {
  const double bottom = kPlot.y + kPlotHeight;
  double unit = 1;
  while (unit * 1024 <= ranges.last_bytes) {
    unit *= 1024;
  }
  const double x_step = niceStep(ranges.last_bytes - ranges.first_bytes, 6, unit);
  for (double at = std::ceil(ranges.first_bytes / x_step) * x_step; at <= ranges.last_bytes;
       at += x_step) {
    svg->line({ranges.x(at), kPlot.y}, {ranges.x(at), bottom}, {kGrid, 1, false});
    char label[32];
    const double value = at / unit;
    std::snprintf(label, sizeof(label), "%.*f", x_step >= unit ? 0 : x_step * 10 >= unit ? 1 : 2,
                  value);
    svg->text({ranges.x(at), bottom + 20}, label, Svg::Anchor::kMiddle, 12, kQuiet);
  }
  const double y_step = std::max(1.0, niceStep(ranges.most_tokens, 6));
  for (double at = 0; at <= ranges.most_tokens; at += y_step) {
    svg->line({kPlot.x, ranges.y(at)}, {kPlot.x + kPlotWidth, ranges.y(at)}, {kGrid, 1, false});
    svg->text({kPlot.x - 8, ranges.y(at) + 4}, std::to_string(std::llround(at)),
              Svg::Anchor::kEnd, 12, kQuiet);
  }
  svg->line({kPlot.x, bottom}, {kPlot.x + kPlotWidth, bottom}, {kAxis, 1, false});
  svg->line({kPlot.x, kPlot.y}, {kPlot.x, bottom}, {kAxis, 1, false});
  const char* const unit_name = unit >= 1024.0 * 1024 * 1024 * 1024 ? "TiB"
                                : unit >= 1024.0 * 1024 * 1024      ? "GiB"
                                : unit >= 1024.0 * 1024             ? "MiB"
                                : unit >= 1024.0                    ? "KiB"
                                                                    : "bytes";
  svg->text({kPlot.x + kPlotWidth / 2, bottom + 44}, std::string("memory, ") + unit_name,
            Svg::Anchor::kMiddle);
  svg->textUpwards({26, kPlot.y + kPlotHeight / 2}, "window, tokens");
}

/// One row above the axes: curves run everywhere inside them.
void drawLegend(const std::vector<Curve>& curves, bool has_chosen, bool has_limit, Svg* svg) {
  double x = kPlot.x;
  const double y = kPlot.y - 16;
  const auto label = [&](const std::string& text) {
    svg->text({x + 28, y + 4}, text, Svg::Anchor::kStart, 12);
    x += 28 + 7.2 * static_cast<double>(text.size()) + 20;
  };
  for (const Curve& curve : curves) {
    svg->line({x, y}, {x + 22, y}, {curve.colour, 3, false});
    label(curve.name);
  }
  if (has_chosen) {
    svg->dot({x + 14, y}, 5, "#ffffff", kChosen);
    label("chosen");
  }
  if (has_limit) {
    svg->line({x, y}, {x + 22, y}, {kChosen, 1.5, true});
    label("memory given");
  }
}

void drawBars(const oriel_plan& plan, Svg* svg) {
  const struct {
    const char* name;
    uint64_t bytes;
    const char* colour;
  } rows[] = {
      {"weights", plan.weights_bytes, "#4477aa"},
      {"cache", plan.kv_bytes, "#66ccee"},
      {"activations", plan.activation_bytes, "#228833"},
      {"staging", plan.staging_bytes, "#ccbb44"},
      {"host", plan.host_bytes, "#aa3377"},
      {"total", plan.total_bytes, "#555555"},
  };
  const double longest = std::max(1.0, static_cast<double>(plan.total_bytes));
  double y = kPlot.y + 12;
  svg->text({kBarsX - 84, kPlot.y - 12}, "bytes by purpose", Svg::Anchor::kStart, 13, "#333", true);
  for (const auto& row : rows) {
    if (&row == &rows[5]) {
      svg->line({kBarsX - 84, y - 4}, {kBarsX + kBarsWidth + 90, y - 4}, {kAxis, 1, false});
      y += 14;
    }
    const bool unknown = &row == &rows[0] && plan.weights_unknown != 0;
    const double width = std::max(1.0, static_cast<double>(row.bytes) / longest * kBarsWidth);
    svg->text({kBarsX - 10, y + 18}, row.name, Svg::Anchor::kEnd);
    if (!unknown) {
      svg->rect({kBarsX, y + 3}, width, 22, row.colour);
    }
    svg->text({kBarsX + (unknown ? 0 : width + 8), y + 18},
              unknown ? "not known" : formatSize(row.bytes), Svg::Anchor::kStart, 12);
    y += 44;
  }
}

}  // namespace

std::string plotPlan(const PlanSource& source, const oriel_options& options,
                     const oriel_plan& plan) {
  oriel_options open_options = options;
  open_options.memory_bytes = plan.memory_bytes;
  open_options.window_tokens = 0;
  open_options.k_format = ORIEL_KV_AUTO;
  open_options.v_format = ORIEL_KV_AUTO;
  oriel_options most_options = open_options;
  most_options.memory_bytes = uint64_t{1} << 60;
  oriel_plan open = {};
  oriel_plan everything = {};
  std::vector<Curve> curves;
  Ranges ranges;
  if (source.tryPlan(open_options, &open) && source.tryPlan(most_options, &everything)) {
    curves = curvesOf(open);
    ranges = rangesOf(open, everything, plan.memory_bytes);
    std::vector<uint64_t> memory;
    for (int i = 0; i <= kSamples; ++i) {
      memory.push_back(static_cast<uint64_t>(
          ranges.first_bytes + (ranges.last_bytes - ranges.first_bytes) * i / kSamples));
    }
    for (uint32_t i = 0; i < open.choice_count; ++i) {
      memory.push_back(open.choices[i].minimum_bytes);
    }
    std::sort(memory.begin(), memory.end());
    for (const uint64_t bytes : memory) {
      open_options.memory_bytes = bytes;
      // To the library 0 bytes mean "choose".
      if (bytes != 0 && static_cast<double>(bytes) <= ranges.last_bytes &&
          source.tryPlan(open_options, &open)) {
        addPoints(open, bytes, &curves);
      }
    }
  }
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      ranges.most_tokens = std::max(ranges.most_tokens, point.y);
    }
  }
  ranges.most_tokens =
      std::max({1.0, ranges.most_tokens, plan.fits != 0 ? double(plan.window_tokens) : 0.0}) * 1.06;
  if (!(ranges.last_bytes > ranges.first_bytes)) {
    ranges.last_bytes = ranges.first_bytes + 1;
  }

  Svg svg(kWidth, kHeight);
  const std::string formats = formatsName(plan.k_format, plan.v_format);
  svg.text({kPlot.x, 36},
           source.title() + (plan.fits != 0 ? " in " : " does not fit in ") +
               shortSize(static_cast<double>(plan.memory_bytes)) +
               (plan.fits != 0
                    ? ": " + formats + ", " + std::to_string(plan.window_tokens) + " tokens"
                    : ": it needs " + formatSize(plan.minimum_bytes)),
           Svg::Anchor::kStart, 18, "#111", true);
  drawAxes(ranges, &svg);
  for (const Curve& curve : curves) {
    std::vector<Point> points;
    for (const Point& point : curve.points) {
      points.push_back({ranges.x(point.x), ranges.y(point.y)});
    }
    if (!points.empty()) {
      svg.polyline(points, {curve.colour, 2.5, false});
    }
  }
  const double given = static_cast<double>(plan.memory_bytes);
  const bool has_limit = given >= ranges.first_bytes && given <= ranges.last_bytes;
  if (has_limit) {
    svg.line({ranges.x(given), kPlot.y}, {ranges.x(given), kPlot.y + kPlotHeight},
             {kChosen, 1.5, true});
  }
  const double taken = static_cast<double>(plan.total_bytes);
  const bool has_chosen =
      plan.fits != 0 && taken >= ranges.first_bytes && taken <= ranges.last_bytes;
  if (has_chosen) {
    svg.dot({ranges.x(taken), ranges.y(plan.window_tokens)}, 6, "#ffffff", kChosen);
  }
  drawLegend(curves, has_chosen, has_limit, &svg);
  drawBars(plan, &svg);
  return svg.document();
}

}  // namespace cli
