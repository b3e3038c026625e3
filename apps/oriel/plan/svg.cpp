#include "plan/svg.h"

#include <cmath>
#include <cstdio>

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

}  // namespace cli
