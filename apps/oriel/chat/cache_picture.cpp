#include "chat/chat.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "output.h"
#include "plan/chart.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr const char* kInk = "#111827";

enum class Part { kPinned, kSinks, kForgotten, kHeld, kSeen, kFree };

/// Tokens [begin, end) of one kind. The free part begins at the conversation's end.
struct Segment {
  Part part;
  uint64_t begin;
  uint64_t end;
  uint64_t tokens() const { return end - begin; }
};

/// The conversation from its first token, then the free part of the window. Without empty segments.
std::vector<Segment> segmentsOf(const CacheView& cache) {
  const uint64_t pinned = std::min(cache.pinned_tokens, cache.sinks_used);
  const uint64_t stored = std::min(cache.first_stored, cache.first_visible);
  const uint64_t used = cache.sinks_used + cache.position - cache.first_visible;
  const uint64_t room = cache.capacity - std::min(used, cache.capacity);
  const Segment all[] = {{Part::kPinned, 0, pinned},
                         {Part::kSinks, pinned, cache.sinks_used},
                         {Part::kForgotten, cache.sinks_used, stored},
                         {Part::kHeld, stored, cache.first_visible},
                         {Part::kSeen, cache.first_visible, cache.position},
                         {Part::kFree, cache.position, cache.position + room}};
  std::vector<Segment> segments;
  for (const Segment& segment : all) {
    if (segment.end > segment.begin) {
      segments.push_back(segment);
    }
  }
  return segments;
}

/// The drawn position of each segment. All are to scale except the evicted part, which may be most of the conversation:
/// it gets at most a sixth, and is `broken` if it would need more.
struct Drawn {
  double width = 0;
  bool broken = false;
};

/// Widths that sum to at most `width`, each at least `least`.
std::vector<Drawn> drawnOf(const std::vector<Segment>& segments, double width, double least) {
  std::vector<Drawn> drawn(segments.size());
  uint64_t tokens = 0;
  uint64_t forgotten = 0;
  for (const Segment& segment : segments) {
    tokens += segment.tokens();
    forgotten += segment.part == Part::kForgotten ? segment.tokens() : 0;
  }
  const double most = std::max(least, width / 6);
  const bool broken = static_cast<double>(forgotten) * width > most * static_cast<double>(tokens);
  double left = width;
  if (broken) {
    left -= most;
    tokens -= forgotten;
  }
  const double spare = left - least * static_cast<double>(segments.size() - (broken ? 1 : 0));
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool is_broken = broken && segments[i].part == Part::kForgotten;
    drawn[i].broken = is_broken;
    drawn[i].width = is_broken ? most
                               : least + std::max(spare, 0.0) *
                                             static_cast<double>(segments[i].tokens()) /
                                             static_cast<double>(tokens);
  }
  return drawn;
}

const char* partName(Part part) {
  switch (part) {
    case Part::kPinned:
      return "pinned";
    case Part::kSinks:
      return "sinks";
    case Part::kForgotten:
      return "forgotten";
    case Part::kHeld:
      return "stored, not seen";
    case Part::kSeen:
      return "seen";
    case Part::kFree:
      return "free";
  }
  return "";
}

const char* partCell(Part part) {
  switch (part) {
    case Part::kPinned:
      return "█";
    case Part::kSinks:
      return "▓";
    case Part::kForgotten:
      return "·";
    case Part::kHeld:
      return "░";
    case Part::kSeen:
      return "▒";
    case Part::kFree:
      return " ";
  }
  return " ";
}

const char* partColour(Part part) {
  switch (part) {
    case Part::kPinned:
      return "#b45309";
    case Part::kSinks:
      return "#f59e0b";
    case Part::kForgotten:
      return "#d1d5db";
    case Part::kHeld:
      return "#bfdbfe";
    case Part::kSeen:
      return "#2563eb";
    case Part::kFree:
      return "#f1f5f9";
  }
  return "none";
}

/// `side` is "k_format" or "v_format".
char formatLetter(const Json& layer, const char* side) {
  const std::string format = layer.is_null() ? "" : textIn(layer, side);
  return format == "int8" ? '8' : format == "int4" ? '4' : format == "f16" ? 'F' : '.';
}

/// For keys or values alone.
const char* colourOf(const std::string& format) {
  return formatColour(formatsName(format, format));
}

std::string partCounts(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) {
    text += (text.empty() ? "" : ", ") + std::to_string(segment.tokens()) + " " +
            partName(segment.part);
  }
  return text.empty() ? "empty" : text;
}

/// Turn starts inside the segment, as shares of its length.
std::vector<double> turnsIn(const CacheView& cache, const Segment& segment) {
  std::vector<double> shares;
  for (const uint64_t turn : cache.turns) {
    if (turn >= segment.begin && turn < segment.end) {
      shares.push_back(static_cast<double>(turn - segment.begin) /
                       static_cast<double>(segment.tokens()));
    }
  }
  return shares;
}

constexpr double kLeft = 24;
constexpr double kDrawn = 912;

constexpr const char* kBreak = "a break: tokens are left out";

/// A gap through the strip around `x`, between two slanted lines.
void drawBreak(double x, double y, double height, Svg* svg) {
  constexpr double kGap = 7;
  constexpr double kSlant = 5;
  constexpr double kOver = 5;
  const Point top = {x + kSlant, y - kOver};
  const Point bottom = {x - kSlant, y + height + kOver};
  svg->line(top, bottom, {"#ffffff", kGap, false});
  for (const double side : {-kGap / 2, kGap / 2}) {
    svg->line({top.x + side, top.y}, {bottom.x + side, bottom.y}, {kInk, 1.5, false});
  }
}

/// The conversation as one strip, with a tick at each turn.
void drawStrip(const CacheView& cache, const std::vector<Segment>& segments, double y, Svg* svg) {
  constexpr double kHeight = 48;
  const std::vector<Drawn> drawn = drawnOf(segments, kDrawn, 4);
  double x = kLeft;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    const double width = drawn[i].width;
    svg->rect({x, y}, width, kHeight, partColour(segment.part));
    for (const double share : turnsIn(cache, segment)) {
      const double at = x + share * width;
      svg->line({at, y - 6}, {at, y + kHeight}, {kInk, 1, false});
    }
    if (drawn[i].broken) {
      drawBreak(x + width / 2, y, kHeight, svg);
    }
    if (width > 60) {
      svg->text({x, y + kHeight + 16}, grouped(segment.begin), Svg::Anchor::kStart, 12);
    }
    x += width;
  }
}

void drawLegend(const std::vector<Segment>& segments, double y, Svg* svg) {
  double x = kLeft;
  for (const Segment& segment : segments) {
    const std::string label = grouped(segment.tokens()) + " " + partName(segment.part);
    svg->rect({x, y - 11}, 12, 12, partColour(segment.part));
    svg->text({x + 18, y}, label, Svg::Anchor::kStart);
    x += 18 + 7.5 * static_cast<double>(label.size()) + 12;
  }
  svg->line({x + 4, y - 12}, {x + 4, y + 2}, {kInk, 1, false});
  svg->text({x + 12, y}, "a turn begins", Svg::Anchor::kStart);
  const std::vector<Drawn> drawn = drawnOf(segments, kDrawn, 4);
  if (std::any_of(drawn.begin(), drawn.end(), [](const Drawn& part) { return part.broken; })) {
    x = kLeft;  // starts a new row
    drawBreak(x + 6, y + 11, 12, svg);
    svg->text({x + 18, y + 22}, kBreak, Svg::Anchor::kStart);
  }
}

/// Two rows of boxes, a column for each layer.
void drawLayers(const CacheView& cache, double y, Svg* svg) {
  const double step = std::min(28.0, (kDrawn - 60) / static_cast<double>(cache.layers.size()));
  svg->text({kLeft, y + 15}, "keys", Svg::Anchor::kStart);
  svg->text({kLeft, y + 41}, "values", Svg::Anchor::kStart);
  double x = kLeft + 60;
  for (const Json& layer : cache.layers) {
    if (!layer.is_null()) {  // a layer with keys and values
      svg->rect({x, y}, 0.9 * step, 20, colourOf(layer["k_format"]));
      svg->rect({x, y + 26}, 0.9 * step, 20, colourOf(layer["v_format"]));
    }
    x += step;
  }
  x = kLeft;
  for (const char* const format : {"f16", "int8", "int4"}) {
    svg->rect({x, y + 62}, 12, 12, colourOf(format));
    svg->text({x + 18, y + 73}, format, Svg::Anchor::kStart);
    x += 70;
  }
  svg->text({x, y + 73}, "one column a layer; sinks are f16 everywhere", Svg::Anchor::kStart);
}

}  // namespace

CacheView cacheViewOf(const Model& model, const Session& session, uint32_t pinned_tokens) {
  const Json now = session.describe();
  const Json& plan = model.wholePlan();
  CacheView cache;
  cache.position = numberIn(now, "position");
  cache.first_visible = numberIn(now, "first_visible");
  cache.first_stored = numberIn(now, "first_stored");
  cache.sinks_used = numberIn(now, "sinks_used");
  cache.capacity = numberIn(now, "window_capacity");
  cache.pinned_tokens = pinned_tokens;
  cache.kv_bytes = model.plan().kv_bytes;
  cache.of_several = model.plan().sessions > 1;
  for (size_t i = 0; i < plan["groups"].size(); ++i) {
    const Json& group = plan["groups"][i];
    if (group["kind"] == "sliding") {
      const auto first = now["group_first_visible"][i].get<uint64_t>();
      cache.sliding_layers += numberIn(group, "layers");
      cache.sliding_seen = std::max(cache.sliding_seen, cache.position - first);
    }
  }
  cache.turns = now["turns"].get<std::vector<uint64_t>>();
  cache.layers = model.info()["layers"];
  return cache;
}

std::string cacheText(const CacheView& cache, unsigned columns) {
  const std::vector<Segment> segments = segmentsOf(cache);
  const unsigned width = std::clamp(columns, 24u, 120u) - 4;
  const std::vector<Drawn> parts = drawnOf(segments, width, 1);
  std::string strip;
  double edge = 0;
  size_t drawn = 0;
  bool broken = false;
  for (size_t i = 0; i < segments.size(); ++i) {
    edge += parts[i].width;
    const size_t cells = static_cast<size_t>(std::llround(edge)) - drawn;
    std::vector<const char*> row(cells, partCell(segments[i].part));
    for (const double share : turnsIn(cache, segments[i])) {
      if (cells != 0) {
        row[std::min(cells - 1, static_cast<size_t>(share * static_cast<double>(cells)))] = "┃";
      }
    }
    if (parts[i].broken && cells != 0) {
      row[cells / 2] = "╱";
      row[(cells - 1) / 2] = "╱";
      broken = true;
    }
    for (const char* cell : row) {
      strip += cell;
    }
    drawn += cells;
  }
  std::string text = partCounts(segments) + "\n";
  if (drawsBlocks()) {
    text = "▕" + strip + "▏\n" + partCounts(segments) + "; a line where a turn begins" +
           (broken ? ", ╱╱ where tokens are left out" : "") + "\n";
  }
  for (const bool keys : {true, false}) {
    text += keys ? "keys    " : "values  ";
    for (const Json& layer : cache.layers) {
      text += formatLetter(layer, keys ? "k_format" : "v_format");
    }
    text += "\n";
  }
  if (cache.sliding_seen != 0) {
    text += std::to_string(cache.sliding_layers) + " layers see the last " +
            std::to_string(cache.sliding_seen) + " tokens only\n";
  }
  const bool some_without = std::any_of(cache.layers.begin(), cache.layers.end(),
                                        [](const Json& layer) { return layer.is_null(); });
  return text + "one letter a layer: F f16, 8 int8, 4 int4" +
         (some_without ? ", . no keys and values; " : "; ") + formatSize(cache.kv_bytes) +
         (cache.of_several ? " for all conversations\n" : "\n");
}

std::string cacheSvg(const CacheView& cache) {
  const std::vector<Segment> segments = segmentsOf(cache);
  Svg svg(kDrawn + 2 * kLeft, 296);
  svg.text({kLeft, 30},
           "The model sees " + grouped(cache.position - cache.first_visible + cache.sinks_used) +
               " of " + grouped(cache.position) + " tokens" +
               (cache.sliding_seen != 0 ? " (" + grouped(cache.sliding_seen) + " in " +
                                              std::to_string(cache.sliding_layers) + " layers)"
                                        : "") +
               (cache.of_several ? "; all caches take " : "; the cache takes ") +
               formatSize(cache.kv_bytes),
           Svg::Anchor::kStart, 15, kInk, true);
  drawStrip(cache, segments, 56, &svg);
  drawLegend(segments, 150, &svg);
  drawLayers(cache, 196, &svg);
  return svg.document();
}

}  // namespace cli
