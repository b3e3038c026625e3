// Ctrl-C.
#pragma once

#include <oriel/oriel.h>

namespace cli {

/// From here on Ctrl-C no longer ends the process: it is counted, cancels the session that is being watched,
/// and wakes who waits for input. The third one without clearInterrupts() in between ends the process all
/// the same.
void catchInterrupts();
/// SIGTERM, which ends services, counts like Ctrl-C from here on.
void catchTermination();
/// How often it was pressed since clearInterrupts().
int interrupts();
void clearInterrupts();
/// Whether calls are to end: it was pressed since spareCalls(). A call that has not begun must not begin.
bool cancelPending();
/// Those so far cancel no more calls.
void spareCalls();

/// Readable once wakeReader() was called since clearWake(); -1 before catchInterrupts() and on Windows.
/// A read that must end on Ctrl-C polls it: the signal may come to any thread.
int wakeDescriptor();
void clearWake();
/// Safe in a signal handler. Ctrl-C does it, too.
void wakeReader();

/// While one of these lives Ctrl-C cancels the session's running call, again and again as long as cancelPending(): a
/// cancel that comes before its call has begun counts for nothing. One at a time. The session lives at least as long: no
/// cancel is on its way once this is destroyed.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(oriel_session* session);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;
};

}  // namespace cli
