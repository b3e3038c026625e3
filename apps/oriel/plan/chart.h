// The SVG shapes that a chart needs. Coordinates are pixels, y down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "output.h"

namespace cli {

struct Point {
  double x = 0;
  double y = 0;
};

class Svg {
 public:
  Svg(double width, double height);

  enum class Anchor { kStart, kMiddle, kEnd };
  struct Stroke {
    const char* colour = "#000";
    double width = 1;
    bool dashed = false;
  };

  void rect(Point corner, double width, double height, const char* fill);
  void line(Point from, Point to, const Stroke& stroke);
  void polyline(const std::vector<Point>& points, const Stroke& stroke);
  void dot(Point centre, double radius, const char* fill, const char* edge);
  /// `text` is any UTF-8; `baseline` is its position.
  void text(Point baseline, std::string_view text, Anchor anchor, double size = 13,
            const char* colour = "#333", bool bold = false);
  /// Reads upwards, centred on `middle`.
  void textUpwards(Point middle, std::string_view text, double size = 13);

  /// The whole document.
  std::string document() const { return body_ + "</svg>\n"; }

 private:
  std::string body_;
};

/// 1, 2 or 5 times a power of ten (of `base`) so that `span` has at most `most` steps.
double niceStep(double span, int most, double base = 1);

// Chart axes: maps numbers to positions, and draws labels.

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

// Groups of a model's layers, as text and JSON.

/// All sliding-window layers together, with their longest window. `ring_tokens` and `bytes` only for a plan's groups.
struct SlidingLayers {
  uint64_t layers = 0;
  uint64_t window_tokens = 0;
  uint64_t ring_tokens = 0;
  uint64_t bytes = 0;
};
SlidingLayers slidingLayers(const Json& groups);

/// "; 10 of short convolutions" and the like: all groups except the session's. May be empty.
std::string groupsText(const Json& groups);

}  // namespace cli
