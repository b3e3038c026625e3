// Chart axes: maps numbers to positions, and draws labels.
#pragma once

#include <string>
#include <vector>

#include "plan/svg.h"

namespace cli {

struct Tick {
  double at = 0;
  std::string label;
};

struct Chart {
  Point corner;  ///< upper left
  double width = 0;
  double height = 0;
  double x_first = 0;
  double x_last = 1;
  double y_last = 1;  ///< from 0

  double bottom() const { return corner.y + height; }
  Point at(double x, double y) const {
    return {corner.x + (x - x_first) / (x_last - x_first) * width, bottom() - y / y_last * height};
  }
  /// The same line in picture coordinates.
  std::vector<Point> at(const std::vector<Point>& points) const;

  /// Draws grid, axes, labels and titles; `y_title` is `left` pixels left of the axis.
  void drawAxes(const std::vector<Tick>& x_ticks, const std::string& x_title,
                const std::string& y_title, double left, Svg* svg) const;
};

/// Formats a number >= 0 with the precision of `step`: "1,024", "0.25".
std::string numberLabel(double value, double step);

constexpr const char* kQuietColour = "#666666";
constexpr const char* kStrongColour = "#111111";
/// A pair of cache formats ("K8V4") has the same colour in every drawing.
const char* formatColour(const std::string& formats);

/// A row of entries; `next` moves to the right.
class Legend {
 public:
  Legend(Point next, Svg* svg) : next_(next), svg_(svg) {}

  void line(const std::string& label, const Svg::Stroke& stroke);
  void dot(const std::string& label, const char* fill, const char* edge);

 private:
  void label(const std::string& text);

  Point next_;
  Svg* svg_;
};

/// True if the name ends with ".svg", the only drawing format.
bool isSvgName(const std::string& path);

}  // namespace cli
