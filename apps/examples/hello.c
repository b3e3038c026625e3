/* The shortest whole program: hello MODEL.gguf */
#include <oriel/oriel.h>
#include <stdio.h>
#include <string.h>

static void complain(oriel_log_level level, const char* line, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "%s\n", line);
}

static int print(const oriel_token_event* event, void* user) {
  fwrite(event->text, 1, event->text_bytes, user);
  return fflush(user);
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "model.gguf";
  const char* text = "What is your name?";
  oriel_options options = {.struct_size = sizeof(options)};
  options.memory_bytes = 64u << 20;
  options.log = complain;
  oriel_model* model = NULL;
  oriel_session* session = NULL;
  int ok = oriel_model_load(path, &options, &model) == ORIEL_OK;
  ok = ok && oriel_session_create(model, NULL, &session) == ORIEL_OK;
  ok = ok && oriel_chat_add(session, "user", text, strlen(text)) == ORIEL_OK;
  ok = ok && oriel_chat_reply(session, NULL, print, stdout, NULL) == ORIEL_OK;
  puts("");
  oriel_session_destroy(session);
  oriel_model_free(model);
  return ok ? 0 : 1;
}
