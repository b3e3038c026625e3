// Ctrl-C.
#pragma once

#include <oriel/oriel.h>

namespace cli {

/// From here on Ctrl-C no longer ends the process: it is counted, and cancels the session that is
/// being watched. The third one without clearInterrupts() in between ends the process all the same.
void catchInterrupts();
/// How often it was pressed since clearInterrupts().
int interrupts();
void clearInterrupts();

/// While one of these lives Ctrl-C cancels the session's running call. One at a time.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(oriel_session* session);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;
};

}  // namespace cli
