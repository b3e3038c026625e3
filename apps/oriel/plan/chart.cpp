#include "plan/chart.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "output.h"
#include "sizes.h"

namespace cli {
namespace {

constexpr const char* kAxis = "#888888";
constexpr const char* kGrid = "#e6e6e6";
constexpr int kMostSteps = 6;
constexpr double kSampleWidth = 22;
constexpr double kLetterWidth = 7.2;

}  // namespace

std::string numberLabel(double value, double step) {
  return step >= 1 ? grouped(static_cast<uint64_t>(std::llround(value)))
                   : formatted("%.*f", step >= 0.1 ? 1 : 2, value);
}

const char* formatColour(const std::string& formats) {
  // Colours that are distinct in red-green colour blindness (Okabe and Ito, Color Universal Design).
  return formats == "f16"    ? "#d55e00"
         : formats == "K8V8" ? "#0072b2"
         : formats == "K8V4" ? "#009e73"
         : formats == "K4V4" ? "#cc79a7"
                             : kQuietColour;
}

std::vector<Point> Chart::at(const std::vector<Point>& points) const {
  std::vector<Point> placed;
  placed.reserve(points.size());
  for (const Point& point : points) {
    placed.push_back(at(point.x, point.y));
  }
  return placed;
}

void Chart::drawAxes(const std::vector<Tick>& x_ticks, const std::string& x_title,
                     const std::string& y_title, double left, Svg* svg) const {
  for (const Tick& tick : x_ticks) {
    const double x = at(tick.at, 0).x;
    svg->line({x, corner.y}, {x, bottom()}, {kGrid, 1, false});
    svg->text({x, bottom() + 20}, tick.label, Svg::Anchor::kMiddle, 12, kQuietColour);
  }
  const double step = niceStep(y_last, kMostSteps);
  for (double value = 0; value <= y_last; value += step) {
    const double y = at(x_first, value).y;
    svg->line({corner.x, y}, {corner.x + width, y}, {kGrid, 1, false});
    svg->text({corner.x - 8, y + 4}, numberLabel(value, step), Svg::Anchor::kEnd, 12, kQuietColour);
  }
  svg->line({corner.x, bottom()}, {corner.x + width, bottom()}, {kAxis, 1, false});
  svg->line(corner, {corner.x, bottom()}, {kAxis, 1, false});
  svg->text({corner.x + width / 2, bottom() + 44}, x_title, Svg::Anchor::kMiddle);
  svg->textUpwards({corner.x - left, corner.y + height / 2}, y_title);
}

void Legend::line(const std::string& text, const Svg::Stroke& stroke) {
  svg_->line(next_, {next_.x + kSampleWidth, next_.y}, stroke);
  label(text);
}

void Legend::dot(const std::string& text, const char* fill, const char* edge) {
  svg_->dot({next_.x + kSampleWidth / 2, next_.y}, 4.5, fill, edge);
  label(text);
}

void Legend::label(const std::string& text) {
  svg_->text({next_.x + kSampleWidth + 6, next_.y + 4}, text, Svg::Anchor::kStart, 12);
  next_.x += kSampleWidth + 6 + kLetterWidth * static_cast<double>(text.size()) + 20;
}

bool isSvgName(const std::string& path) {
  std::string ending = path.substr(path.size() - std::min<size_t>(path.size(), 4));
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".svg";
}

}  // namespace cli
