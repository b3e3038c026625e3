// An app with a namespace oriel of its own, whose types have the names of the library's.
#include <oriel/oriel.h>

#include <cstdio>
#include <memory>

namespace oriel {

int destroyed = 0;

struct Model {
  ~Model() { ++destroyed; }
  oriel_model* handle = nullptr;
};

struct Session {
  ~Session() { ++destroyed; }
  std::shared_ptr<Model> model;
  oriel_session* handle = nullptr;
};

struct Status {
  ~Status() { ++destroyed; }
};
struct Sampler : Status {};
struct Tokenizer : Status {};
struct Arena : Status {};
struct Executor : Status {
  virtual ~Executor() { ++destroyed; }
};

}  // namespace oriel

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  oriel_options options = ORIEL_OPTIONS_INIT;
  options.memory_bytes = 64u << 20;
  options.device = "cpu";
  bool answered = false;
  {
    oriel::Session session;
    session.model = std::make_shared<oriel::Model>();
    oriel::Sampler sampler;
    oriel::Tokenizer tokenizer;
    oriel::Arena arena;
    oriel::Executor executor;
    answered = oriel_model_load(argv[1], &options, &session.model->handle) == ORIEL_OK &&
               oriel_session_create(session.model->handle, nullptr, &session.handle) == ORIEL_OK &&
               oriel_chat_add(session.handle, "user", "Hello!", 6) == ORIEL_OK;
    oriel_session_destroy(session.handle);
    oriel_model_free(session.model->handle);
  }
  std::printf("destroyed %d, %s\n", oriel::destroyed, answered ? "answered" : "failed");
  return answered && oriel::destroyed == 7 ? 0 : 1;
}
