// The window's data: plain values, copied from the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings.h"

namespace desktop {

struct Message {
  bool from_user = false;
  std::string text;
};

/// Where the tokens of a conversation are (oriel_session_describe).
struct CacheState {
  uint64_t position = 0;
  uint64_t first_visible = 0;
  uint64_t first_stored = 0;
  uint64_t evicted = 0;
  uint32_t sinks_used = 0;
  uint32_t window_used = 0;
  uint32_t window_capacity = 0;
  std::vector<uint64_t> turns;  ///< Positions of a conversation's tokens (oriel_session_describe).
};

/// An unsent message: it is longer than the window.
struct Refused {
  std::string text;
  uint64_t tokens = 0;  ///< 0: no message was refused
  uint64_t capacity = 0;
};

enum class ChatPhase { kIdle, kReading, kReplying, kMoving };

struct ChatState {
  int id = 0;
  std::string title;
  std::vector<Message> messages;
  ChatPhase phase = ChatPhase::kIdle;
  uint64_t read_done = 0;  ///< of read_total tokens, while kReading
  uint64_t read_total = 0;
  uint32_t reply_tokens = 0;
  double tokens_per_s = 0;
  double first_token_ms = 0;
  CacheState cache;
  std::string note;      ///< how the chat was carried over, or why its reply ended
  std::string saved_as;  ///< the file it was last saved to
  std::string file;      ///< name in the chat store; "": not saved yet
  Refused refused;
};

enum class ModelPhase { kNone, kLoading, kReady };

struct ModelState {
  ModelPhase phase = ModelPhase::kNone;
  uint64_t load_done = 0;  ///< of load_total bytes, while kLoading
  uint64_t load_total = 0;
  std::string name;
  std::string device;
  PlanSettings settings;  ///< in force
  oriel_plan plan = {};
  uint64_t prefix_tokens = 0;  ///< shared by all chats, held once
  uint64_t prefix_bytes = 0;
  uint64_t allocated_bytes = 0;  ///< reported by the library
};

struct AppState {
  ModelState model;
  std::vector<ChatState> chats;
  std::string error;         ///< "" or one line: WHAT HAPPENED: WHAT TO DO
  bool device_lost = false;  ///< the chats can go on: Engine::goOn()
  uint64_t would_do_bytes =
      0;  ///< smallest memory for the refused settings; 0: the refusal is not about memory
  std::string notice;    ///< good news, in one line
  uint64_t version = 0;  ///< grows with every change

  const ChatState* chat(int id) const;
};

/// The name in the tab: the beginning of the first message.
std::string titleOf(const std::vector<Message>& messages);

/// Converts messages to a JSON list in the OpenAI form, and back. Reading skips system messages, and
/// returns false for other text.
std::string messagesToJson(const std::vector<Message>& messages);
bool messagesFromJson(const std::string& json, std::vector<Message>* messages);

}  // namespace desktop
