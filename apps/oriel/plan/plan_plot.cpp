#include "plan/plan_plot.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "kv_formats.h"
#include "output.h"
#include "plan/chart.h"
#include "sizes.h"

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
constexpr const char* kRule = "#888888";

struct Curve {
  std::string name;
  const char* colour;
  oriel_kv_format k;
  oriel_kv_format v;
  std::vector<Point> points;  // bytes, tokens
};

std::vector<Curve> curvesOf(const oriel_plan& plan) {
  std::vector<Curve> curves;
  for (uint32_t i = 0; i < plan.choice_count; ++i) {
    const oriel_plan_choice& choice = plan.choices[i];
    curves.push_back({formatsName(choice.k_format, choice.v_format),
                      formatColour(choice.k_format, choice.v_format),
                      choice.k_format,
                      choice.v_format,
                      {}});
  }
  return curves;
}

void addPoints(const oriel_plan& plan, uint64_t memory_bytes, std::vector<Curve>* curves) {
  for (uint32_t i = 0; i < plan.choice_count && i < curves->size(); ++i) {
    const oriel_plan_choice& choice = plan.choices[i];
    if (plannedFits(plan, choice)) {
      (*curves)[i].points.push_back(
          {static_cast<double>(memory_bytes), static_cast<double>(choice.window_tokens)});
    }
  }
}

/// Axes around the memory given, as far as more of it changes anything.
Chart chartOf(const oriel_plan& smallest, const oriel_plan& everything, uint64_t memory_bytes) {
  double least = static_cast<double>(leastOf(smallest, smallest.choices[0]));
  double enough = 0;
  for (uint32_t i = 0; i < smallest.choice_count; ++i) {
    least = std::min(least, static_cast<double>(leastOf(smallest, smallest.choices[i])));
    enough = std::max(enough, static_cast<double>(everything.choices[i].total_bytes));
  }
  const double given = static_cast<double>(memory_bytes);
  double first = std::min(least, given);
  double last = std::min(enough, std::max(given, least) * 2 - first);
  last = std::max(last, first + (enough - least) / 16);
  const double margin = (last - first) / 24 + 1;
  return {kPlot, kPlotWidth, kPlotHeight, std::max(0.0, first - margin), last + margin, 1};
}

std::string shortSize(double bytes) {
  std::string text = formatSize(static_cast<uint64_t>(std::llround(bytes)));
  const size_t zero = text.find(".0 ");
  return zero == std::string::npos ? text : text.erase(zero, 2);
}

void drawAxes(const Chart& chart, Svg* svg) {
  static const char* const kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double unit = 1;
  size_t name = 0;
  while (unit * 1024 <= chart.x_last && name + 1 < std::size(kUnits)) {
    unit *= 1024;
    ++name;
  }
  const double step = niceStep(chart.x_last - chart.x_first, 6, unit);
  std::vector<Tick> ticks;
  for (double at = std::ceil(chart.x_first / step) * step; at <= chart.x_last; at += step) {
    const int decimals = step >= unit ? 0 : step * 10 >= unit ? 1 : 2;
    ticks.push_back({at, formatted("%.*f", decimals, at / unit)});
  }
  chart.drawAxes(ticks, std::string("memory, ") + kUnits[name], "window, tokens", kPlot.x - 26,
                 svg);
}

/// One row above the axes: curves run everywhere inside them.
void drawLegend(const std::vector<Curve>& curves, bool has_chosen, bool has_limit, Svg* svg) {
  Legend legend({kPlot.x, kPlot.y - 16}, svg);
  for (const Curve& curve : curves) {
    legend.line(curve.name, {curve.colour, 3, false});
  }
  if (has_chosen) {
    legend.dot("chosen", "#ffffff", kStrongColour);
  }
  if (has_limit) {
    legend.line("memory given", {kStrongColour, 1.5, true});
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
      {plan.weights_unknown != 0 ? "the rest" : "total", plan.total_bytes, "#555555"},
  };
  const double longest = std::max(1.0, static_cast<double>(plan.total_bytes));
  double y = kPlot.y + 12;
  svg->text({kBarsX - 84, kPlot.y - 12}, "bytes by purpose", Svg::Anchor::kStart, 13, "#333", true);
  for (const auto& row : rows) {
    if (&row == &rows[5]) {
      svg->line({kBarsX - 84, y - 4}, {kBarsX + kBarsWidth + 90, y - 4}, {kRule, 1, false});
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
  open_options.window_tokens = options.window_tokens == 0 ? 0 : ORIEL_WINDOW_MAX;
  open_options.k_format = ORIEL_KV_AUTO;
  open_options.v_format = ORIEL_KV_AUTO;
  oriel_options most_options = open_options;
  most_options.memory_bytes = uint64_t{1} << 60;
  oriel_plan open = {};
  oriel_plan everything = {};
  oriel_options least_options = open_options;
  least_options.memory_bytes = 1;
  oriel_plan smallest = {};
  std::vector<Curve> curves;
  Chart chart = {kPlot, kPlotWidth, kPlotHeight};
  if (source.tryPlan(open_options, &open) && source.tryPlan(most_options, &everything) &&
      source.tryPlan(least_options, &smallest)) {
    curves = curvesOf(open);
    chart = chartOf(smallest, everything, plan.memory_bytes);
    std::vector<uint64_t> memory;
    for (int i = 0; i <= kSamples; ++i) {
      memory.push_back(
          static_cast<uint64_t>(chart.x_first + (chart.x_last - chart.x_first) * i / kSamples));
    }
    for (uint32_t i = 0; i < smallest.choice_count; ++i) {
      memory.push_back(leastOf(smallest, smallest.choices[i]));
    }
    std::sort(memory.begin(), memory.end());
    for (const uint64_t bytes : memory) {
      open_options.memory_bytes = bytes;
      // To the library 0 bytes mean "choose".
      if (bytes != 0 && static_cast<double>(bytes) <= chart.x_last &&
          source.tryPlan(open_options, &open)) {
        addPoints(open, bytes, &curves);
      }
    }
  }
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      chart.y_last = std::max(chart.y_last, point.y);
    }
  }
  chart.y_last =
      std::max({1.0, chart.y_last, plannedFits(plan) ? double(plan.window_tokens) : 0.0}) * 1.06;
  if (!(chart.x_last > chart.x_first)) {
    chart.x_last = chart.x_first + 1;
  }

  Svg svg(kWidth, kHeight);
  const std::string formats = formatsName(plan.k_format, plan.v_format);
  const std::string given_size = shortSize(static_cast<double>(plan.memory_bytes));
  const std::string window = formats + ", " + std::to_string(plan.window_tokens) + " tokens";
  const std::string title =
      plan.weights_unknown != 0
          ? source.title() + ", without its weights, in " + given_size + ": " + window
      : plan.fits != 0 ? source.title() + " in " + given_size + ": " + window
                       : source.title() + " does not fit in " + given_size + ": it needs " +
                             formatSize(plan.minimum_bytes);
  svg.text({kPlot.x, 36}, title, Svg::Anchor::kStart, 18, "#111", true);
  drawAxes(chart, &svg);
  for (const Curve& curve : curves) {
    if (!curve.points.empty()) {
      svg.polyline(chart.at(curve.points), {curve.colour, 2.5, false});
    }
  }
  const double given = static_cast<double>(plan.memory_bytes);
  const bool has_limit = given >= chart.x_first && given <= chart.x_last;
  if (has_limit) {
    const double x = chart.at(given, 0).x;
    svg.line({x, kPlot.y}, {x, chart.bottom()}, {kStrongColour, 1.5, true});
  }
  const double taken = static_cast<double>(plan.total_bytes);
  const bool has_chosen = plannedFits(plan) && taken >= chart.x_first && taken <= chart.x_last;
  if (has_chosen) {
    svg.dot(chart.at(taken, plan.window_tokens), 6, "#ffffff", kStrongColour);
  }
  drawLegend(curves, has_chosen, has_limit, &svg);
  drawBars(plan, &svg);
  return svg.document();
}

}  // namespace cli
