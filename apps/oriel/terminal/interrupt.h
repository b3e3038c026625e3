// Ctrl-C.
#pragma once

#include <oriel/oriel.h>

namespace cli {

/// From here on Ctrl-C does not end the process: it is counted, cancels the watched session's call, and wakes readers of
/// input. The third press without clearInterrupts() ends the process.
void catchInterrupts();
/// From here on SIGTERM, which ends services, counts like Ctrl-C.
void catchTermination();
/// Presses since clearInterrupts().
int interrupts();
void clearInterrupts();
/// True if calls must end: Ctrl-C was pressed since spareCalls(). Do not start a call then.
bool cancelPending();
/// Earlier presses no longer cancel calls.
void spareCalls();

/// Readable after wakeReader() until clearWake(); -1 before catchInterrupts() and on Windows. A read that must end on
/// Ctrl-C polls it, since the signal may arrive on any thread.
int wakeDescriptor();
void clearWake();
/// Safe in a signal handler. Ctrl-C calls it, too.
void wakeReader();

/// During its lifetime Ctrl-C cancels the session's running call, repeatedly while cancelPending(): a cancel before the
/// call begins has no effect. One at a time. The session must outlive it: after destruction no cancel is pending.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(oriel_session* session);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;
};

}  // namespace cli
