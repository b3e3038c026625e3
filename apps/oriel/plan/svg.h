// The SVG shapes that a chart needs. Coordinates are pixels, y down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

}  // namespace cli
