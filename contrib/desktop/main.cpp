// oriel-desktop: chats with a local model in a window, in a memory budget that is planned before loading.
#include <SDL_main.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "conversation.h"
#include "files.h"
#include "system.h"
#include "window/app.h"

namespace {

constexpr const char* kUsage =
    "usage: oriel-desktop [MODEL.gguf] [options]\n"
    "  --memory SIZE     limit for model and chats (300MB); default: half of the free\n"
    "                    memory, on a graphics card 80 %\n"
    "  --chats N         number of chats to reserve memory for; default: 4\n"
    "  --window N        context tokens of each chat; default: the largest window that fits\n"
    "  --system TEXT     the shared prompt\n"
    "  --mmproj FILE     the model's encoder of pictures\n"
    "  --lora FILE       a LoRA adapter that chats can use; may be repeated\n"
    "  --device NAME     auto, vulkan or cpu\n"
    "  --light, --dark   colours; as the desktop has them\n"
    "  --no-save         keeps no chats, and opens none of those that were kept\n"
    "  --scale F         size of everything; as the screen has it\n"
    "  --size WxH        of the window\n"
    "  --state FILE      what the window shows, as JSON, for tests\n";

bool readDevice(const std::string& name, std::string* device) {
  *device = name;
  return name == "cpu" || name == "vulkan" || name == "auto";
}

bool readOption(const std::string& name, const std::string& value, desktop::AppOptions* options) {
  desktop::PlanSettings& settings = options->settings;
  if (name == "--memory") {
    return cli::parseSize(value, &settings.memory_bytes);
  }
  if (name == "--chats") {
    settings.chats = static_cast<uint32_t>(std::atoi(value.c_str()));
    return settings.chats >= 1 && settings.chats <= 64;
  }
  if (name == "--window") {
    settings.window_tokens = static_cast<uint32_t>(std::atoi(value.c_str()));
    return settings.window_tokens > 0;
  }
  if (name == "--system") {
    settings.system_prompt = value;
    return true;
  }
  if (name == "--mmproj") {
    settings.mmproj = value;
    return true;
  }
  if (name == "--lora") {
    settings.adapters.push_back(value);
    return true;
  }
  if (name == "--device") {
    return readDevice(value, &settings.device);
  }
  if (name == "--scale") {
    options->frame.scale = static_cast<float>(std::atof(value.c_str()));
    return options->frame.scale >= 0.5f && options->frame.scale <= 4;
  }
  if (name == "--size") {
    return std::sscanf(value.c_str(), "%dx%d", &options->frame.width, &options->frame.height) == 2;
  }
  if (name == "--state") {
    options->state_file = value;
    return true;
  }
  return false;
}

bool readArguments(const std::vector<std::string>& arguments, desktop::AppOptions* options) {
  for (size_t i = 0; i < arguments.size(); i++) {
    const std::string& word = arguments[i];
    if (word == "--light") {
      options->dark = false;
    } else if (word == "--dark") {
      options->dark = true;
    } else if (word == "--no-save") {
      options->keeps = false;
    } else if (word.compare(0, 2, "--") != 0) {
      options->settings.model_path = word;
    } else if (i + 1 == arguments.size() || !readOption(word, arguments[++i], options)) {
      std::fprintf(stderr, "oriel-desktop: %s: see --help\n", word.c_str());
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments = cli::arguments(argc, argv);
  desktop::AppOptions options;
  options.settings.model_path = cli::variable("ORIEL_MODEL");
  options.keeps = !desktop::keptChatsFolder().empty();
  if (!arguments.empty() && arguments[0] == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (!readArguments(arguments, &options)) {
    return 2;
  }
  if (options.settings.model_path.empty()) {
    options.settings.model_path = desktop::bundledModel();
  }
  try {
    desktop::App(options).run();
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "oriel-desktop: %s\n", error.what());
    return 1;
  }
  return 0;
}
