/* Several conversations on one model with a shared system prompt, answered in parallel:
 *
 *   printf 'ann Hello!\nbob Tell me a story.\n\nann Good bye!\n' | conversations MODEL.gguf
 *
 * Each line is NAME TEXT. An empty line, or the end of the input, answers everyone who has asked something. */
#include <oriel/advanced.h>
#include <stdio.h>
#include <string.h>

#define GUESTS 4u
#define NAME 16u
#define ANSWER 4096u

typedef struct Guest {
  char name[NAME];
  oriel_session* session;
  int waits;           /* for an answer */
  char answer[ANSWER]; /* the answer so far */
  size_t bytes;
} Guest;

static const char kSystem[] = "You are a friendly host. Answer in one sentence.";

static void onLog(oriel_log_level level, const char* message, void* user) {
  (void)user;
  if (level == ORIEL_LOG_ERROR) fprintf(stderr, "conversations: %s\n", message);
}

/* Answers arrive interleaved: each is collected, and shown when all are complete. */
static int onToken(const oriel_token_event* event, void* user) {
  Guest* guest = user;
  if (event->text_bytes > ANSWER - guest->bytes) return 1; /* no room: this answer ends here */
  memcpy(guest->answer + guest->bytes, event->text, event->text_bytes);
  guest->bytes += event->text_bytes;
  return 0;
}

/* The guest of that name, with their own session; NULL if there are too many. */
static Guest* find(Guest* guests, const char* name, oriel_model* model) {
  size_t i = 0;
  for (; i < GUESTS && guests[i].session; ++i) {
    if (!strcmp(guests[i].name, name)) return &guests[i];
  }
  if (i == GUESTS) {
    fprintf(stderr, "conversations: there is no room for %s: at most %u talk at a time\n", name,
            GUESTS);
    return NULL;
  }
  if (oriel_session_create(model, NULL, &guests[i].session) != ORIEL_OK) return NULL;
  strcpy(guests[i].name, name);
  return &guests[i];
}

static oriel_status answerAll(Guest* guests) {
  oriel_reply_options options = ORIEL_REPLY_OPTIONS_INIT;
  options.greedy = 1;
  options.max_tokens = 60;
  oriel_reply replies[GUESTS] = {{0}};
  size_t count = 0;
  for (size_t i = 0; i < GUESTS; ++i) {
    if (!guests[i].waits) continue;
    guests[i].bytes = 0;
    replies[count++] = (oriel_reply){.struct_size = sizeof(oriel_reply),
                                     .session = guests[i].session,
                                     .options = &options,
                                     .on_token = onToken,
                                     .user = &guests[i]};
  }
  const oriel_status status = count ? oriel_reply_many(replies, count) : ORIEL_OK;
  for (size_t i = 0; i < GUESTS; ++i) {
    if (guests[i].waits)
      printf("%s: %.*s\n", guests[i].name, (int)guests[i].bytes, guests[i].answer);
    guests[i].waits = 0;
  }
  return status;
}

/* Reads one line; an empty line answers all questions. */
static oriel_status hear(Guest* guests, const char* line, oriel_model* model) {
  char name[NAME];
  int text = 0;
  if (sscanf(line, "%15s %n", name, &text) != 1) return answerAll(guests);
  Guest* guest = find(guests, name, model);
  if (!guest) return ORIEL_ERROR_STATE;
  guest->waits = 1;
  return oriel_chat_add(guest->session, "user", line + text, strlen(line + text));
}

int main(int argc, char** argv) {
  const oriel_options options = {.struct_size = sizeof(options),
                                 .memory_bytes = 64u << 20,
                                 .log = onLog,
                                 .sessions = GUESTS,
                                 .system_prompt = kSystem};
  static Guest guests[GUESTS];
  oriel_model* model = NULL;
  char line[1024];
  if (argc != 2) {
    fprintf(stderr, "usage: conversations MODEL.gguf < LINES\n");
    return 2;
  }
  oriel_status status = oriel_model_load(argv[1], &options, &model);
  while (status == ORIEL_OK && fgets(line, sizeof(line), stdin)) {
    line[strcspn(line, "\n")] = 0;
    status = hear(guests, line, model);
  }
  if (status == ORIEL_OK) status = answerAll(guests);
  for (size_t i = 0; i < GUESTS; ++i) oriel_session_destroy(guests[i].session);
  oriel_model_free(model);
  return status == ORIEL_OK ? 0 : 1;
}
