// Checks of option values.
#pragma once

#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

namespace cli {

/// A number from `least` to `most`.
inline CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
          return std::string();
        }
        char message[96];
        std::snprintf(message, sizeof(message), "must be from %.10g to %.10g", least, most);
        return "'" + text + "' is not allowed: it " + message;
      },
      "");
}

}  // namespace cli
