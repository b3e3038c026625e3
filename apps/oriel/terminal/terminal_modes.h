// Terminal modes for reading single keys, and their restoration: also when the program is stopped (Ctrl-Z) or killed by
// a signal. POSIX only; elsewhere no-ops.
#pragma once

namespace cli {

/// Delivers keys one by one without echo; Ctrl-C keeps typed input; pastes are marked ("bracketed"). False: stdin is not
/// a suitable terminal.
bool takeTerminal();
/// Restores the modes. Safe in a signal handler. False if they were not taken.
bool leaveTerminal();

/// Restores takeTerminal()'s modes after another program changed them.
void quietTerminal();
/// Records the current modes while a line is being edited: until quietTerminal(), resuming after Ctrl-Z restores them.
void keepEditingModes();

/// True if the terminal was resized or the program was stopped since the last call; wakeReader() was called for it.
bool terminalResized();
bool terminalResumed();

}  // namespace cli
