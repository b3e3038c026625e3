#include "pictures/message_pictures.h"

#include <filesystem>
#include <system_error>

#include <oriel/advanced.h>

#include "output.h"
#include "pictures.h"

namespace cli {
namespace {

/// A text member of an object; "" if it has none.
std::string textOf(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_string()
             ? object[name].get<std::string>()
             : "";
}

std::string bytesOfUrl(const std::string& url) {
  constexpr char kBase64[] = ";base64,";
  const size_t comma = url.find(kBase64);
  if (url.compare(0, 5, "data:") != 0) {
    throw Failure{kExitFailed, "a picture's address is \"" + url.substr(0, 40) +
                                   "\", and Oriel opens no addresses: send the picture as "
                                   "data:image/png;base64,..."};
  }
  std::string bytes;
  if (comma == std::string::npos || !fromBase64(url.substr(comma + sizeof(kBase64) - 1), &bytes)) {
    throw Failure{kExitFailed,
                  "a picture's data URL is not base64: send data:image/png;base64,..."};
  }
  return bytes;
}

std::string found(const std::string& path, const std::string& folder) {
  std::error_code error;
  const auto given = std::filesystem::u8path(path);
  const auto beside = std::filesystem::u8path(folder) / given;
  return !std::filesystem::exists(given, error) && std::filesystem::exists(beside, error)
             ? beside.u8string()
             : path;
}

}  // namespace

std::string pictureUrl(const Json& part) {
  const std::string type = textOf(part, "type");
  if (type != "image_url" && type != "input_image") {
    return "";
  }
  const std::string url = textOf(part, "image_url");
  return url.empty() && part.contains("image_url") ? textOf(part["image_url"], "url") : url;
}

bool fromBase64(const std::string& text, std::string* bytes) {
  bytes->clear();
  bytes->reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  uint32_t count = 0;
  size_t end = text.size();
  while (end != 0 && text[end - 1] == '=') {
    --end;
  }
  for (size_t i = 0; i < end; ++i) {
    const char c = text[i];
    const uint32_t value = c >= 'A' && c <= 'Z'   ? static_cast<uint32_t>(c - 'A')
                           : c >= 'a' && c <= 'z' ? static_cast<uint32_t>(c - 'a' + 26)
                           : c >= '0' && c <= '9' ? static_cast<uint32_t>(c - '0' + 52)
                           : c == '+' || c == '-' ? 62
                           : c == '/' || c == '_' ? 63
                                                  : 64;
    if (c == '\n' || c == '\r' || c == ' ') {
      continue;
    }
    if (value == 64) {
      return false;
    }
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes->push_back(static_cast<char>(bits >> count & 0xff));
    }
  }
  return count != 6 && text.size() - end <= 2;
}

Json MessagePictures::part(const std::string& path) {
  Json part;
  part["type"] = "image";
  part["path"] = path;
  return part;
}

void MessagePictures::take(Json* messages, const std::string& folder, bool files) {
  for (Json& message : *messages) {
    if (!message.is_object() || !message.contains("content") || !message["content"].is_array()) {
      continue;
    }
    for (Json& part : message["content"]) {
      const std::string url = pictureUrl(part);
      const std::string path =
          files && textOf(part, "type") == "image" ? textOf(part, "path") : std::string();
      if (url.empty() && path.empty()) {
        continue;
      }
      pictures_.push_back(path.empty() ? decodePicture(bytesOfUrl(url), "")
                                       : readPicture(found(path, folder)));
      part = Json();
      part["type"] = "image";
      part["picture"] = pictures_.size() - 1;
    }
  }
}

oriel_status MessagePictures::add(oriel_session* session, const std::string& json) const {
  if (pictures_.empty()) {
    return oriel_chat_add(session, nullptr, json.data(), json.size());
  }
  std::vector<oriel_picture> given;
  for (const DecodedPicture& one : pictures_) {
    given.push_back({one.rgb.data(), one.width, one.height, 0, ORIEL_RGB8});
  }
  return oriel_chat_add_pictures(session, json.data(), json.size(), given.data(), given.size());
}

DecodedPicture readPicture(const std::string& path) { return decodePicture(readAll(path), path); }

}  // namespace cli
