// Pictures in messages: files and data URLs as the library takes them.
#pragma once

#include <string>
#include <vector>

#include "model_handle.h"
#include "output.h"
#include "pictures.h"

namespace cli {

/// The pictures of some messages.
class MessagePictures {
 public:
  /// Replaces parts {"type": "image", "path"}, {"type": "image_url", "image_url": {"url": "data:..."}} and {"type":
  /// "input_image", "image_url": "data:..."} by {"type": "image", "picture": N}, and decodes the pictures. `folder`: of
  /// relative paths, after the current one; `files`: paths are allowed. Throws Failure.
  void take(Json* messages, const std::string& folder, bool files = true);
  /// One part with a picture's path, for take().
  static Json part(const std::string& path);
  bool empty() const { return pictures_.empty(); }

  /// oriel_chat_add, or oriel_chat_add_pictures if there are some.
  oriel_status add(oriel_session* session, const std::string& json) const;

 private:
  std::vector<DecodedPicture> pictures_;
};

/// The address in a part of the types image_url (an object with the address, or the address) and input_image; "" for
/// other parts.
std::string pictureUrl(const Json& part);
/// The decoded bytes of base64 text. False: not base64.
bool fromBase64(const std::string& text, std::string* bytes);

}  // namespace cli
