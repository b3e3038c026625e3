#include "plan/plan_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "output.h"
#include "plan/chart.h"
#include "system.h"

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
  std::vector<Point> points;  // bytes, tokens
};

std::vector<Curve> curvesOf(const Json& plan) {
  std::vector<Curve> curves;
  for (const Json& choice : plan["choices"]) {
    curves.push_back({formatsName(choice), {}});
  }
  return curves;
}

void addPoints(const Json& plan, uint64_t memory_bytes, std::vector<Curve>* curves) {
  const Json& choices = plan["choices"];
  for (size_t i = 0; i < choices.size() && i < curves->size(); ++i) {
    if (plannedFits(choices[i], memory_bytes)) {
      (*curves)[i].points.push_back(
          {static_cast<double>(memory_bytes), realIn(choices[i], "window_tokens")});
    }
  }
}

/// Axes that contain the given memory, and end where more memory changes nothing.
Chart chartOf(const Json& smallest, const Json& everything, uint64_t memory_bytes) {
  double least = std::numeric_limits<double>::infinity();
  double enough = 0;
  for (const Json& choice : smallest["choices"]) {
    least = std::min(least, static_cast<double>(leastOf(choice)));
  }
  for (const Json& choice : everything["choices"]) {
    enough = std::max(enough, realIn(choice, "total_bytes"));
  }
  const double given = static_cast<double>(memory_bytes);
  double first = std::min(least, given);
  double last = std::min(enough, std::max(given, least) * 2 - first);
  last = std::max({last, first + (enough - least) / 16, given});
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
    ticks.push_back({at, numberLabel(at / unit, step / unit)});
  }
  chart.drawAxes(ticks, std::string("memory, ") + kUnits[name], "window, tokens", kPlot.x - 26,
                 svg);
}

/// One row above the axes, since curves fill the inside.
void drawLegend(const std::vector<Curve>& curves, bool has_chosen, Svg* svg) {
  Legend legend({kPlot.x, kPlot.y - 16}, svg);
  for (const Curve& curve : curves) {
    legend.line(curve.name, {formatColour(curve.name), 3, false});
  }
  if (has_chosen) {
    legend.dot("chosen", "#ffffff", kStrongColour);
  }
  legend.line("memory given", {kStrongColour, 1.5, true});
}

void drawBars(const Json& plan, Svg* svg) {
  const struct {
    const char* name;
    const char* field;
    const char* colour;
  } rows[] = {
      {"weights", "weights_bytes", "#4477aa"},
      {"cache", "kv_bytes", "#66ccee"},
      {"activations", "activation_bytes", "#228833"},
      {"staging", "staging_bytes", "#ccbb44"},
      {"host", "host_bytes", "#aa3377"},
      {weightsUnknown(plan) ? "the rest" : "total", "total_bytes", "#555555"},
  };
  const double longest = std::max(1.0, realIn(plan, "total_bytes"));
  double y = kPlot.y + 12;
  svg->text({kBarsX - 84, kPlot.y - 12}, "bytes by purpose", Svg::Anchor::kStart, 13, "#333", true);
  for (const auto& row : rows) {
    if (&row == &rows[5]) {
      svg->line({kBarsX - 84, y - 4}, {kBarsX + kBarsWidth + 90, y - 4}, {kRule, 1, false});
      y += 14;
    }
    const bool unknown = plan[row.field].is_null();
    const double width = std::max(1.0, realIn(plan, row.field) / longest * kBarsWidth);
    svg->text({kBarsX - 10, y + 18}, row.name, Svg::Anchor::kEnd);
    if (!unknown) {
      svg->rect({kBarsX, y + 3}, width, 22, row.colour);
    }
    svg->text({kBarsX + (unknown ? 0 : width + 8), y + 18},
              unknown ? "not known" : formatSize(numberIn(plan, row.field)), Svg::Anchor::kStart,
              12);
    y += 44;
  }
}

}  // namespace

std::string plotPlan(const PlanSource& source, CommonOptions options, const oriel_speed* speed,
                     const Json& plan) {
  const uint64_t given_bytes = numberIn(plan, "memory_bytes");
  options.load.set("window", options.load.number("window") == 0 ? "0" : "max");
  options.load.erase("kv");
  const auto planIn = [&](uint64_t memory_bytes) {
    options.load.set("memory", memory_bytes);
    oriel::Options library_options = planOptions(options);
    library_options.speed = speed;
    return source.tryPlan(library_options);
  };
  const Json open = planIn(given_bytes);
  const Json everything = planIn(uint64_t{1} << 60);
  const Json smallest = planIn(1);
  std::vector<Curve> curves;
  Chart chart = {kPlot, kPlotWidth, kPlotHeight};
  if (!open.is_null() && !everything.is_null() && !smallest.is_null()) {
    curves = curvesOf(open);
    chart = chartOf(smallest, everything, given_bytes);
    std::vector<uint64_t> memory;
    for (int i = 0; i <= kSamples; ++i) {
      memory.push_back(
          static_cast<uint64_t>(chart.x_first + (chart.x_last - chart.x_first) * i / kSamples));
    }
    for (const Json& choice : smallest["choices"]) {
      memory.push_back(leastOf(choice));
    }
    std::sort(memory.begin(), memory.end());
    for (const uint64_t bytes : memory) {
      // For the library 0 bytes mean "choose".
      if (bytes != 0 && static_cast<double>(bytes) <= chart.x_last) {
        if (const Json other = planIn(bytes); !other.is_null()) {
          addPoints(other, bytes, &curves);
        }
      }
    }
  }
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      chart.y_last = std::max(chart.y_last, point.y);
    }
  }
  chart.y_last =
      std::max({1.0, chart.y_last, plannedFits(plan) ? realIn(plan, "window_tokens") : 0.0}) * 1.06;
  if (!(chart.x_last > chart.x_first)) {
    chart.x_last = chart.x_first + 1;
  }

  Svg svg(kWidth, kHeight);
  const double given = static_cast<double>(given_bytes);
  const std::string window =
      formatsName(plan) + ", " + grouped(numberIn(plan, "window_tokens")) + " tokens";
  const std::string title =
      weightsUnknown(plan)
          ? source.title() + ", without its weights, in " + shortSize(given) + ": " + window
      : plannedFits(plan) ? source.title() + " in " + shortSize(given) + ": " + window
                          : source.title() + " does not fit in " + shortSize(given) +
                                ": it needs " + formatSize(numberIn(plan, "minimum_bytes"));
  svg.text({kPlot.x, 36}, title, Svg::Anchor::kStart, 18, "#111", true);
  drawAxes(chart, &svg);
  for (const Curve& curve : curves) {
    if (!curve.points.empty()) {
      svg.polyline(chart.at(curve.points), {formatColour(curve.name), 2.5, false});
    }
  }
  const double x = chart.at(given, 0).x;
  svg.line({x, kPlot.y}, {x, chart.bottom()}, {kStrongColour, 1.5, true});
  const double taken = realIn(plan, "total_bytes");
  const bool has_chosen = plannedFits(plan) && taken >= chart.x_first && taken <= chart.x_last;
  if (has_chosen) {
    svg.dot(chart.at(taken, realIn(plan, "window_tokens")), 6, "#ffffff", kStrongColour);
  }
  drawLegend(curves, has_chosen, &svg);
  drawBars(plan, &svg);
  return svg.document();
}

}  // namespace cli
