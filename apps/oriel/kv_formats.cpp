#include "kv_formats.h"

#include "options.h"
#include "validators.h"

namespace cli {

bool parseKvFormat(const std::string& given, CommonOptions* options) {
  const std::string text = lowerCase(given);
  struct Named {
    const char* name;
    oriel_kv_format k;
    oriel_kv_format v;
  };
  static const Named kFormats[] = {{"auto", ORIEL_KV_AUTO, ORIEL_KV_AUTO},
                                   {"f16", ORIEL_KV_F16, ORIEL_KV_F16},
                                   {"k8v8", ORIEL_KV_INT8, ORIEL_KV_INT8},
                                   {"k8v4", ORIEL_KV_INT8, ORIEL_KV_INT4},
                                   {"k4v4", ORIEL_KV_INT4, ORIEL_KV_INT4}};
  for (const Named& format : kFormats) {
    if (text == format.name) {
      options->k_format = format.k;
      options->v_format = format.v;
      return true;
    }
  }
  return false;
}

std::string formatsName(oriel_kv_format k, oriel_kv_format v) {
  const auto bits = [](oriel_kv_format format) {
    return format == ORIEL_KV_INT4 ? "4" : format == ORIEL_KV_INT8 ? "8" : "16";
  };
  if (k == ORIEL_KV_F16 && v == ORIEL_KV_F16) {
    return "f16";
  }
  return std::string("K") + bits(k) + "V" + bits(v);
}

}  // namespace cli
