#include "kv_formats.h"

namespace cli {

std::string formatsName(const std::string& k, const std::string& v) {
  const auto bits = [](const std::string& format) {
    return format.substr(format.size() > 3 ? 3 : 1);
  };
  return k == "f16" && v == "f16" ? k : "K" + bits(k) + "V" + bits(v);
}

std::string formatsName(const Json& object) {
  return formatsName(object.at("k_format"), object.at("v_format"));
}

}  // namespace cli
