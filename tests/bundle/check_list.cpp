#include "bundle/check_list.h"

#include <cstdio>

namespace oriel_internal::bundle {

void CheckList::begin(const std::string& group, const std::string& name) {
  group_ = group;
  name_ = name;
  begun_ = std::chrono::steady_clock::now();
  std::printf("%s/%s ... ", group.c_str(), name.c_str());
  std::fflush(stdout);
}

void CheckList::end(bool passed, const std::string& detail, const Json& extra) {
  ++(passed ? passed_ : failed_);
  record(passed ? "passed" : "failed", detail, extra);
}

void CheckList::skip(const std::string& reason) {
  ++skipped_;
  record("skipped", reason, Json::object());
}

void CheckList::atMost(double value, double limit, const std::string& unit) {
  char detail[160];
  std::snprintf(detail, sizeof(detail), "%.3g %s, at most %.3g", value, unit.c_str(), limit);
  end(value <= limit, detail, {{"value", value}, {"limit", limit}});
}

void CheckList::status(oriel_status got, oriel_status wanted) {
  const std::string said = oriel_status_text(got);
  end(got == wanted, got == wanted ? said : said + ", wanted: " + oriel_status_text(wanted));
}

void CheckList::record(const char* status, const std::string& detail, const Json& extra) {
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun_;
  Json result = {{"group", group_},
                 {"name", name_},
                 {"status", status},
                 {"detail", detail},
                 {"ms", took.count()}};
  result.update(extra);
  results_.push_back(result);
  std::printf("%s (%s)\n", status, detail.c_str());
  std::fflush(stdout);
}

}  // namespace oriel_internal::bundle
