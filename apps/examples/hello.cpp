// The same in C++, with owners that free what they hold: hello MODEL.gguf
#include <oriel/oriel.h>

#include <cstdio>
#include <memory>
#include <string>

struct Release {
  void operator()(oriel_model* it) const { oriel_model_free(it); }
  void operator()(oriel_session* it) const { oriel_session_destroy(it); }
};
// A session is declared behind its model, and so destroyed before it.
using Model = std::unique_ptr<oriel_model, Release>;
using Session = std::unique_ptr<oriel_session, Release>;

Model load(const char* path) {
  oriel_options options{};
  options.struct_size = sizeof(options);
  options.memory_bytes = 64u << 20;
  options.log = [](oriel_log_level level, const char* line, void*) {
    if (level == ORIEL_LOG_ERROR) std::fprintf(stderr, "%s\n", line);
  };
  oriel_model* model = nullptr;
  oriel_model_load(path, &options, &model);  // NULL where it fails
  return Model(model);
}

Session begin(const Model& model) {
  oriel_session* session = nullptr;
  if (model) oriel_session_create(model.get(), nullptr, &session);
  return Session(session);
}

bool say(const Session& session, const std::string& text) {
  const auto print = [](const oriel_token_event* event, void*) {
    std::fwrite(event->text, 1, event->text_bytes, stdout);
    return std::fflush(stdout);
  };
  oriel_session* s = session.get();
  return oriel_chat_add(s, "user", text.data(), text.size()) == ORIEL_OK &&
         oriel_chat_reply(s, nullptr, print, nullptr, nullptr) == ORIEL_OK;
}

int main(int argc, char** argv) {
  const Model model = load(argc > 1 ? argv[1] : "model.gguf");
  const Session session = begin(model);
  if (!session || !say(session, "What is your name?")) return 1;
  std::puts("");
  return 0;
}
