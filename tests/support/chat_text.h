// Rendering with strings. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/captured_log.h"
#include "text/chat.h"

namespace oriel_internal::test {

struct ChatMessage {
  std::string role;
  std::string text;
};

/// A piece of conversation as it was rendered.
struct Piece {
  Status status;
  std::string text;
  RenderedText out;

  /// What lies in literal range `i`.
  std::string literal(uint32_t i = 0) const {
    return text.substr(out.literal[i].begin, out.literal[i].end - out.literal[i].begin);
  }
};

/// Measures, then renders into a buffer of exactly that size.
template <typename Render>
Piece pieceOf(const Render& render) {
  Piece piece;
  piece.status = render(&piece.out);
  if (piece.status.ok() || piece.status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    piece.text.resize(piece.out.needed);
    piece.out.text = piece.text.data();
    piece.out.capacity = piece.out.needed;
    piece.status = render(&piece.out);
  }
  return piece;
}

inline ChatTemplate formatNamed(const std::string& name) {
  const ChatFormat* const format = chatFormatByName(name.c_str());
  EXPECT_NE(format, nullptr) << name;
  return format == nullptr ? ChatTemplate() : chatTemplateOf(*format);
}

/// All format names, from the list that messages show.
inline std::vector<std::string> formatNames() {
  std::vector<std::string> names(1);
  for (const char* at = kChatFormatNames; *at != '\0'; ++at) {
    if (*at == ',') {
      names.emplace_back();
    } else if (*at != ' ') {
      names.back() += *at;
    }
  }
  return names;
}

inline std::vector<oriel_internal::ChatMessage> messageList(
    const std::vector<ChatMessage>& messages) {
  std::vector<oriel_internal::ChatMessage> list;
  for (const ChatMessage& message : messages) {
    list.push_back({message.role.c_str(), message.text.data(), message.text.size()});
  }
  return list;
}

/// The conversation as a whole; what went wrong in angle brackets.
inline std::string wholeText(const ChatTemplate& chat, const ChatOptions& options,
                             const std::vector<ChatMessage>& messages, bool generation,
                             std::vector<TextRange>* literals = nullptr) {
  CapturedLog log;
  const std::vector<oriel_internal::ChatMessage> list = messageList(messages);
  std::vector<TextRange> ranges(2 * list.size() + 1);
  RenderedConversation out;
  Status status = renderConversation(chat, options, list.data(), list.size(), generation, true,
                                     log.log(), &out);
  if (!status.ok() && status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return "<" + log.errors() + ">";
  }
  std::string text(out.needed, '\0');
  out.text = text.data();
  out.capacity = text.size();
  out.literals = ranges.data();
  status = renderConversation(chat, options, list.data(), list.size(), generation, true, log.log(),
                              &out);
  EXPECT_TRUE(status.ok());
  ranges.resize(out.n_literals);
  if (literals != nullptr) {
    *literals = ranges;
  }
  return text;
}

/// The same, message by message, as a session renders it.
inline std::string textInPieces(const ChatTemplate& chat, ChatOptions options,
                                const std::vector<ChatMessage>& messages, bool generation) {
  CapturedLog log;
  std::string text;
  ChatPlace place;
  place.begins = place.leads = place.writes_bos = true;
  for (const ChatMessage& message : messages) {
    const Piece piece = pieceOf([&](RenderedText* out) {
      return renderMessage(chat, options, place, message.role.c_str(), message.text.data(),
                           message.text.size(), log.log(), out);
    });
    EXPECT_TRUE(piece.status.ok()) << chat.name() << ": " << log.errors();
    text += piece.text;
    place.begins = place.leads = false;
    place.turn_open = piece.out.turn_open;
    options.thinking = piece.out.thinking;
  }
  if (generation) {
    text += pieceOf([&](RenderedText* out) {
              return renderGeneration(chat, options, place, out);
            }).text;
  }
  return text;
}

}  // namespace oriel_internal::test
