#include "bundle/checks.h"

namespace oriel_internal::bundle {
namespace {

struct Sink {
  CheckList* list;
  Json candidates = Json::array();
};

void onCheck(const oriel_check* check, void* user) {
  CheckList* list = static_cast<Sink*>(user)->list;
  list->begin("kernels", check->name);
  if (check->result == ORIEL_CHECK_SKIPPED) {
    list->skip(check->reason);
  } else if (check->result == ORIEL_CHECK_FAILED) {
    list->end(false, check->reason, {{"value", check->error}, {"limit", check->limit}});
  } else {
    list->atMost(check->error, check->limit, "of the root mean square");
  }
}

void onCandidate(const oriel_candidate* candidate, void* user) {
  static_cast<Sink*>(user)->candidates.push_back({{"op", candidate->op},
                                                  {"name", candidate->name},
                                                  {"microseconds", candidate->microseconds},
                                                  {"chosen", candidate->chosen != 0}});
}

}  // namespace

Json checkKernels(const Device& device, bool time_candidates, CheckList* list) {
  Sink sink{list};
  oriel_self_test_result result = ORIEL_INIT(oriel_self_test_result);
  const Options options = device.options();
  const oriel_status status =
      oriel_self_test(&options, onCheck, time_candidates ? onCandidate : nullptr, &sink, &result);
  if (status != ORIEL_OK) {
    list->begin("kernels", "self-test");
    list->end(false, std::string(oriel_status_text(status)) + ": " + lastError());
  }
  return sink.candidates;
}

}  // namespace oriel_internal::bundle
