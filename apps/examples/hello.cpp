// The same in C++, with owners that free what they hold: hello MODEL.gguf
#include <oriel/oriel.h>

#include <cstdio>
#include <memory>

struct Release {
  void operator()(oriel_model* model) const { oriel_model_free(model); }
  void operator()(oriel_session* session) const { oriel_session_destroy(session); }
};
using Model = std::unique_ptr<oriel_model, Release>;
using Session =
    std::unique_ptr<oriel_session, Release>;  // declared behind its model: destroyed before it

int main(int argc, char** argv) {
  oriel_options options{};
  options.struct_size = sizeof(options);
  options.memory_bytes = 64u << 20;
  options.log = [](oriel_log_level level, const char* line, void*) {
    if (level == ORIEL_LOG_ERROR) std::fprintf(stderr, "%s\n", line);
  };
  oriel_model* loaded = nullptr;
  if (oriel_model_load(argc > 1 ? argv[1] : "model.gguf", &options, &loaded) != ORIEL_OK) return 1;
  const Model model(loaded);
  oriel_session* created = nullptr;
  if (oriel_session_create(model.get(), nullptr, &created) != ORIEL_OK) return 1;
  const Session session(created);

  const auto print = [](const oriel_token_event* event, void*) {
    std::fwrite(event->text, 1, event->text_bytes, stdout);
    return std::fflush(stdout);
  };
  if (oriel_chat_add(session.get(), "user", "What is your name?", 18) != ORIEL_OK) return 1;
  if (oriel_chat_reply(session.get(), nullptr, print, nullptr, nullptr) != ORIEL_OK) return 1;
  std::puts("");
  return 0;
}
