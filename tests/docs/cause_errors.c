/* Causes every status that needs no broken device, and prints "STATUS: line" for each, the line as the
 * log gets it ("-" without a line): cause_errors MODEL.gguf EMPTY_FOLDER. docs/api.md quotes them. */
#include <oriel/advanced.h>
#include <oriel/tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char logged[2048];

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) snprintf(logged, sizeof(logged), "%s", message);
}

static void say(oriel_status status) {
  printf("%d: %s\n", (int)status, logged[0] ? logged : "-");
  logged[0] = 0;
}

static oriel_options base(void) {
  oriel_options options = ORIEL_OPTIONS_INIT;
  options.memory_bytes = 16u << 20;
  options.log = onLog;
  options.device = "cpu";
  options.threads = 1;
  return options;
}

static oriel_setting setting;

/* One option by name. */
static void set(oriel_options* options, const char* name, const char* value) {
  setting.name = name;
  setting.value = value;
  options->settings = &setting;
  options->setting_count = 1;
}

/* A load that must fail. */
static void refuse(const char* path, oriel_options options) {
  oriel_model* model = NULL;
  say(oriel_model_load(path, &options, &model));
}

static const char* writeFile(const char* folder, const char* name, const char* text, size_t bytes) {
  static char path[4096];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(text, 1, bytes, file) != bytes || fclose(file)) exit(2);
  return path;
}

static int stopLoading(uint64_t done, uint64_t total, void* user) {
  (void)done, (void)total, (void)user;
  return 1;
}

static void loading(const char* model, const char* folder) {
  oriel_options options = base();
  refuse(NULL, options);
  refuse("missing.gguf", options);
  refuse(writeFile(folder, "text.gguf", "This is no model.", 17), options);
  options.memory_bytes = 1u << 20;
  refuse(model, options);
  options = base();
  options.window_tokens = 5000000;
  refuse(model, options);
  options = base();
  options.window_tokens = 200;
  set(&options, "prefix_tokens", "300");
  refuse(model, options);
  options = base();
  options.device = "vulkan:98";
  refuse(model, options);
  options = base();
  options.progress = stopLoading;
  refuse(model, options);
  options = base();
  set(&options, "disable_features", "warp_drive");
  refuse(model, options);
}

/* A copy of the model with another architecture name, or truncated. */
static void damaged(const char* model, const char* folder) {
  FILE* file = fopen(model, "rb");
  char* bytes = malloc(32u << 20);
  const size_t count = file && bytes ? fread(bytes, 1, 32u << 20, file) : 0;
  if (count < 1000 || fclose(file)) exit(2);
  refuse(writeFile(folder, "cut.gguf", bytes, count / 2), base());
  const char kKey[] = "general.architecture";
  size_t at = 0;
  while (memcmp(bytes + at, kKey, sizeof(kKey) - 1)) ++at;
  bytes[at + sizeof(kKey) - 1 + 4 + 8] =
      'z'; /* after the value's type and length: its first letter */
  refuse(writeFile(folder, "newer.gguf", bytes, count), base());
  free(bytes);
}

static void tooSlow(const char* model) {
  oriel_options options = base();
  oriel_speed speed = ORIEL_INIT(oriel_speed);
  if (oriel_speed_measure(model, NULL, 0, &options, &speed) != ORIEL_OK) exit(2);
  options.speed = &speed;
  set(&options, "min_speed", "1e9");
  refuse(model, options);
}

static void* refuseBig(size_t bytes, void* user) {
  (void)user;
  return bytes > 1000000 ? NULL : malloc(bytes);
}
static void release(void* block, size_t bytes, void* user) {
  (void)bytes, (void)user;
  free(block);
}

static void noMemory(const char* model) {
  const oriel_allocator allocator = {refuseBig, release, NULL};
  oriel_options options = base();
  options.allocator = &allocator;
  refuse(model, options);
}

static oriel_model* loaded;

static int callBack(const oriel_token_event* event, void* user) {
  (void)event;
  oriel_session* session = user;
  static int once;
  if (!once++) {
    say(oriel_session_reset(session));
    say(oriel_trim(loaded, ORIEL_TRIM_SCRATCH, NULL));
  }
  oriel_session_cancel(session);
  return 0;
}

static void talking(const char* path, const char* folder) {
  oriel_options options = base();
  oriel_model* model = NULL;
  oriel_session *session = NULL, *second = NULL;
  options.window_tokens = 64;
  if (oriel_model_load(path, &options, &model) != ORIEL_OK) exit(2);
  loaded = model;
  if (oriel_session_create(model, NULL, &session) != ORIEL_OK) exit(2);
  say(oriel_session_create(model, NULL, &second));
  say(oriel_session_generate(session, NULL, NULL, NULL, NULL));
  const oriel_text text = {"Hi", 2, NULL, 0};
  size_t scores = 0;
  say(oriel_embed_many(session, ORIEL_POOLING_AUTO, ORIEL_EMBED_SCORES, &text, 1, NULL, 0, &scores,
                       NULL));
  say(oriel_chat_add(session, "wizard", "Hi", 2));
  say(oriel_chat_add(session, "user", "\xff", 1));
  oriel_reply_options schema = ORIEL_REPLY_OPTIONS_INIT;
  schema.schema = "{}";
  if (oriel_chat_add(session, "user", "Hello!", 6) != ORIEL_OK) exit(2);
  say(oriel_chat_reply(session, &schema, NULL, NULL, NULL));
  say(oriel_chat_reply(session, NULL, callBack, session, NULL));
  say(oriel_session_go_back(session, ORIEL_BACK_TO_POSITION, 100000, NULL, 0));
  for (int i = 0; i < 20; ++i) {
    if (oriel_session_append_text(session, "The fox met the bear. ", 22, 0) != ORIEL_OK) exit(2);
  }
  say(oriel_session_go_back(session, ORIEL_BACK_TO_POSITION, 20, NULL, 0));
  char small[16];
  size_t needed = 0;
  say(oriel_snapshot_save(session, small, sizeof(small), &needed));
  say(oriel_snapshot_restore(session, "no snapshot", 11, 0, NULL));
  say(oriel_session_save(session, writeFile(folder, "notes.txt", "mine", 4), 0));
  if (oriel_trim(model, ORIEL_TRIM_WEIGHTS, NULL) != ORIEL_OK) exit(2);
  say(oriel_session_generate(session, NULL, NULL, NULL, NULL));
  oriel_model_free(model); /* refused, because its session exists */
  say(ORIEL_OK);
  oriel_session_destroy(session);
  oriel_model_free(model);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  loading(argv[1], argv[2]);
  damaged(argv[1], argv[2]);
  tooSlow(argv[1]);
  noMemory(argv[1]);
  talking(argv[1], argv[2]);
  return 0;
}
