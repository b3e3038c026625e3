// The reason of a failed call, from the library's log callback.
#pragma once

#include <mutex>
#include <string>

#include <oriel/oriel.h>

namespace desktop {

class LastError {
 public:
  /// Must live as long as the model that is loaded with these options.
  void listen(oriel_options* options);
  /// "WHAT HAPPENED: WHAT TO DO".
  std::string text(oriel_status status) const;
  void clear();

 private:
  static void onLog(oriel_log_level level, const char* message, void* user);

  mutable std::mutex mutex_;
  std::string line_;
};

}  // namespace desktop
