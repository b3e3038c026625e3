// The terminal's modes while keys are read one by one, and their return: also when the program is stopped (Ctrl-Z)
// or ended by a signal. POSIX only; elsewhere nothing happens.
#pragma once

namespace cli {

/// From now on keys come one by one and are not echoed; Ctrl-C takes nothing back that was typed before it, and
/// pastes are marked ("bracketed"). False: stdin is no terminal, or one that cannot.
bool takeTerminal();
/// The modes as they were. Safe in a signal handler, and when they were never taken: false then.
bool leaveTerminal();

/// As takeTerminal() had it, after somebody else set the modes.
void quietTerminal();
/// The modes that stand now are what comes back after Ctrl-Z until quietTerminal(); a line is being edited.
void keepEditingModes();

/// Whether the size has changed, or the program was stopped, since this was asked; wakeReader() was called then.
bool terminalResized();
bool terminalResumed();

}  // namespace cli
