#include "plan/chart.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "output.h"
#include "system.h"

namespace cli {
namespace {

/// Independent of the locale, at most two decimals.
std::string number(double value) {
  const long long hundredths = std::llround(value * 100);
  const long long whole = (hundredths < 0 ? -hundredths : hundredths) / 100;
  const long long rest = (hundredths < 0 ? -hundredths : hundredths) % 100;
  char text[48];
  std::snprintf(text, sizeof(text), "%s%lld.%02lld", hundredths < 0 ? "-" : "", whole, rest);
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // XML 1.0 allows no other control characters.
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string strokeAttributes(const Svg::Stroke& stroke) {
  return attribute("stroke", stroke.colour) + attribute("stroke-width", number(stroke.width)) +
         (stroke.dashed ? attribute("stroke-dasharray", "6 4") : "");
}

}  // namespace

Svg::Svg(double width, double height) {
  body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", number(width)) +
          attribute("height", number(height)) +
          attribute("viewBox", "0 0 " + number(width) + " " + number(height)) +
          " font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n";
  rect({0, 0}, width, height, "#ffffff");
}

void Svg::rect(Point corner, double width, double height, const char* fill) {
  body_ += "<rect" + attribute("x", number(corner.x)) + attribute("y", number(corner.y)) +
           attribute("width", number(width)) + attribute("height", number(height)) +
           attribute("fill", fill) + "/>\n";
}

void Svg::line(Point from, Point to, const Stroke& stroke) {
  body_ += "<line" + attribute("x1", number(from.x)) + attribute("y1", number(from.y)) +
           attribute("x2", number(to.x)) + attribute("y2", number(to.y)) +
           strokeAttributes(stroke) + "/>\n";
}

void Svg::polyline(const std::vector<Point>& points, const Stroke& stroke) {
  std::string list;
  for (const Point& point : points) {
    list += (list.empty() ? "" : " ") + number(point.x) + "," + number(point.y);
  }
  body_ += "<polyline fill=\"none\" stroke-linejoin=\"round\"" + attribute("points", list) +
           strokeAttributes(stroke) + "/>\n";
}

void Svg::dot(Point centre, double radius, const char* fill, const char* edge) {
  body_ += "<circle" + attribute("cx", number(centre.x)) + attribute("cy", number(centre.y)) +
           attribute("r", number(radius)) + attribute("fill", fill) + attribute("stroke", edge) +
           " stroke-width=\"2\"/>\n";
}

void Svg::text(Point baseline, std::string_view text, Anchor anchor, double size,
               const char* colour, bool bold) {
  static const char* const kAnchors[] = {"start", "middle", "end"};
  body_ += "<text" + attribute("x", number(baseline.x)) + attribute("y", number(baseline.y)) +
           attribute("text-anchor", kAnchors[static_cast<int>(anchor)]) +
           attribute("font-size", number(size)) + attribute("fill", colour) +
           (bold ? " font-weight=\"600\"" : "") + ">" + escaped(text) + "</text>\n";
}

void Svg::textUpwards(Point middle, std::string_view text, double size) {
  body_ += "<text text-anchor=\"middle\" fill=\"#333\"" + attribute("font-size", number(size)) +
           attribute("transform",
                     "translate(" + number(middle.x) + " " + number(middle.y) + ") rotate(-90)") +
           ">" + escaped(text) + "</text>\n";
}

double niceStep(double span, int most, double base) {
  double step = base * std::pow(10.0, std::floor(std::log10(span / base / most)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (span / (step * factor) <= most) {
      return step * factor;
    }
  }
  return step * 10;
}

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

SlidingLayers slidingLayers(const Json& groups) {
  SlidingLayers all;
  for (const Json& group : groups) {
    if (group["kind"] == "sliding") {
      all.layers += group["layers"].get<uint64_t>();
      all.window_tokens = std::max(all.window_tokens, group["window_tokens"].get<uint64_t>());
      all.ring_tokens = std::max(all.ring_tokens, group.value("ring_tokens", uint64_t{0}));
      all.bytes += group.value("bytes", uint64_t{0});
    }
  }
  return all;
}

std::string groupsText(const Json& groups) {
  std::string text;
  for (size_t i = 1; i < groups.size(); ++i) {
    const Json& group = groups[i];
    const std::string window = group["window_tokens"].dump();
    text += "; " + group["layers"].dump() +
            (group["kind"] == "session"       ? " layers see the last " + window + " of the window"
             : group["kind"] == "sliding"     ? " layers see the last " + window
             : group["kind"] == "convolution" ? " layers are convolutions of the last " + window
                                              : " layers keep a state");
  }
  return text;
}

}  // namespace cli
