// Sizes and counts as text.
#pragma once

#include <cstdint>
#include <string>

#include "output.h"

namespace cli {

class Settings;

/// "262144", "300MB" (10^6), "300MiB" and "300M" (2^20, as in ls -h, docker and systemd), "1.5GiB"; units B, K, M, G, T
/// in any case, optionally with spaces. False for anything else, for zero and for overflow.
bool parseSize(const std::string& text, uint64_t* bytes);

/// "512 B", "3.0 KiB", "12.3 MiB".
std::string formatSize(uint64_t bytes);

/// The same in the unit that the user typed: "12 MB" for "12MB". Like formatSize() if `typed` has another form.
std::string sizeAsTyped(const std::string& typed, uint64_t bytes);
std::string sizeAsTyped(const Settings& settings, const char* name, uint64_t bytes);

/// "91,706,016"
std::string grouped(uint64_t number);

/// `bytes` in MiB (MB if `like` has decimal units), rounded up to a tenth, in a form that parseSize reads: "12.4MiB".
std::string suggestSize(uint64_t bytes, const std::string& like = "");

/// "0:05", "1:02:03".
std::string durationText(uint64_t seconds);

/// "1 token", "2,000 tokens".
std::string countOf(uint64_t count, const char* what);

// Names of cache formats.

/// Display name of key and value formats: "K8V4" for "int8" and "int4", "f16" for "f16" and "f16".
std::string formatsName(const std::string& k, const std::string& v);
/// For a plan, a choice or a snapshot.
std::string formatsName(const Json& object);

/// The selectable pairs in --kv's spelling, from large to small.
constexpr const char* kFormatPairs[] = {"f16", "k8v8", "k8v4", "k4v4"};

}  // namespace cli
