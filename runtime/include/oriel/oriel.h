/*
 * Oriel: an LLM runtime that stays inside a fixed number of bytes.
 *
 *   oriel_options options = ORIEL_OPTIONS_INIT;
 *   options.memory_bytes = 300u << 20;
 *   oriel_model *model;     oriel_model_load("model.gguf", &options, &model);
 *   oriel_session *session; oriel_session_create(model, NULL, &session);
 *   oriel_chat_add(session, "user", "Hello!", 6);
 *   oriel_chat_reply(session, NULL, on_token, my_data, NULL);
 *   oriel_session_destroy(session);
 *   oriel_model_free(model);
 *
 * This header is enough for a chat app. oriel/advanced.h has tokens, forks, snapshots in memory, embeddings and
 * devices. oriel/tools.h has measurements. oriel/oriel.hpp wraps this header for C++.
 *
 * Rules:
 *  - Errors are values. The library never aborts, exits, throws or prints, and has no global state. A failed call leaves
 *    its object unchanged unless the call's comment says otherwise.
 *  - A failed call reports one line, "WHAT HAPPENED: WHAT TO DO", to the log, to oriel_options.error_line and to the
 *    object's last error. ORIEL_ERROR_CANCELLED, ORIEL_ERROR_BUFFER_TOO_SMALL and NULL arguments report no line.
 *  - Structs start with struct_size: use the ORIEL_..._INIT macros, or ORIEL_INIT(type). Zero means the default.
 *  - Text is UTF-8. Paths end in NUL. "/dev/fd/N" names an open descriptor (not on Windows).
 *  - Option names, values and texts are copied during the call. Callbacks and their user pointers must stay valid until
 *    the object that was made with them is gone.
 *  - Calls that fill a buffer take (buffer, capacity, needed) and always set *needed. Text ends in NUL, which *needed
 *    counts. Too small a buffer: ORIEL_ERROR_BUFFER_TOO_SMALL.
 *  - JSON follows RFC 8259: at most 64 MiB, 64 levels and 1048576 names in one object.
 *  - Threads: use one session from one thread at a time. Sessions and models may run in parallel. A call on a busy, paused
 *    or trimmed session fails with ORIEL_ERROR_STATE. oriel_session_cancel may be called from any thread and takes no
 *    lock, but not from a signal handler: set a flag there. A call needs at most 256 KiB of stack.
 *  - Callbacks run on the calling thread, inside the call. They may call oriel_session_cancel and calls that only ask:
 *    ..._get_..., ..._describe, ..._last_error, text calls and oriel_transcript_export. Every other call on the same
 *    model fails with ORIEL_ERROR_STATE.
 *  - A lost device fails every call with ORIEL_ERROR_DEVICE until oriel_session_recover.
 *  - Memory: load and create take the planned bytes. Generating tokens allocates nothing. Messages and openings of replies
 *    borrow about 64 to 200 KiB and wipe it. JSON, schemas, files and words above 1 KiB borrow too (docs/memory.md).
 */
#ifndef ORIEL_ORIEL_H_
#define ORIEL_ORIEL_H_

#include <stddef.h>
#include <stdint.h>
#if defined(_WIN32) && defined(ORIEL_EXPORT) /* to build a DLL */
#define ORIEL_API __declspec(dllexport)
#elif defined(_WIN32) && defined(ORIEL_SHARED) /* to use the DLL */
#define ORIEL_API __declspec(dllimport)
#elif defined(__GNUC__)
#define ORIEL_API __attribute__((visibility("default")))
#else
#define ORIEL_API
#endif

#ifdef __cplusplus
template <typename Struct>
struct oriel_init : Struct {
  oriel_init() : Struct() { this->struct_size = sizeof(Struct); }
};
#define ORIEL_INIT(type) oriel_init<type>()
extern "C" {
#else
#define ORIEL_INIT(type) \
  { .struct_size = sizeof(type) }
#endif
#define ORIEL_OPTIONS_INIT ORIEL_INIT(oriel_options)
#define ORIEL_SESSION_OPTIONS_INIT ORIEL_INIT(oriel_session_options)
#define ORIEL_REPLY_OPTIONS_INIT ORIEL_INIT(oriel_reply_options)
#define ORIEL_PLAN_INIT ORIEL_INIT(oriel_plan)
#define ORIEL_STATS_INIT ORIEL_INIT(oriel_stats)
#define ORIEL_VERSION_MAJOR 0
#define ORIEL_VERSION_MINOR 2
#define ORIEL_VERSION_PATCH 0

/* ---- Status ---------------------------------------------------------------------------------- */
typedef enum oriel_status {
  ORIEL_OK = 0,
  ORIEL_ERROR_ARGUMENT = 1,      /* NULL, a value out of range, an unknown name */
  ORIEL_ERROR_IO = 2,            /* a file cannot be opened, read or written, or changed during the call */
  ORIEL_ERROR_FORMAT = 3,        /* a damaged file, or the wrong kind of file */
  ORIEL_ERROR_UNSUPPORTED = 4,   /* a sound file or request that this build cannot run */
  ORIEL_ERROR_MEMORY_BUDGET = 5, /* does not fit memory_bytes; the line names the minimum */
  ORIEL_ERROR_OUT_OF_MEMORY = 6, /* the system or the device refused planned memory */
  ORIEL_ERROR_NO_DEVICE = 7,     /* the requested device is missing or unusable */
  ORIEL_ERROR_DEVICE = 8,        /* the device was lost; oriel_session_recover */
  ORIEL_ERROR_TIMEOUT = 9,       /* the device did not answer in time; as ORIEL_ERROR_DEVICE */
  ORIEL_ERROR_CANCELLED = 10,
  ORIEL_ERROR_BUFFER_TOO_SMALL = 11,
  ORIEL_ERROR_STATE = 12,    /* not allowed now: busy, paused, trimmed, empty */
  ORIEL_ERROR_CONTEXT = 13,  /* longer than the window, or evicted */
  ORIEL_ERROR_TEXT = 14,     /* invalid UTF-8 */
  ORIEL_ERROR_INTERNAL = 15, /* a defect in Oriel; please report it */
  ORIEL_ERROR_SPEED = 16     /* slower than min_speed with every format */
} oriel_status;

ORIEL_API const char *oriel_status_text(oriel_status status); /* a short English name, never NULL */
ORIEL_API const char *oriel_version(void);                    /* "0.2.0" */

/* ---- Options --------------------------------------------------------------------------------- */
/* ERROR: the line of a failed call. WARNING: the call works, with an unexpected effect. INFO: choices of the load. */
typedef enum oriel_log_level { ORIEL_LOG_ERROR, ORIEL_LOG_WARNING, ORIEL_LOG_INFO, ORIEL_LOG_DEBUG } oriel_log_level;
/* `message` is one line without a newline, valid during the callback. */
typedef void (*oriel_log_fn)(oriel_log_level level, const char *message, void *user);

/* `done` of `total`: bytes of weights in load and resume, tokens in a session's calls. `done` is 0 before the first byte
 * and may stay at `total` during later phases. Return non-zero to cancel the call. */
typedef int (*oriel_progress_fn)(uint64_t done, uint64_t total, void *user);

typedef struct oriel_allocator oriel_allocator; /* oriel/advanced.h */

/* An option by name: {"kv", "k8v4"}. A value replaces the struct's field of the same option. Lists: numbers separated by
 * commas, or the name once for each element. docs/reference/options.md lists all. Errors: ORIEL_ERROR_ARGUMENT with the name, the value and the range. */
typedef struct oriel_setting {
  const char *name;
  const char *value;
} oriel_setting;
#define ORIEL_WINDOW_MAX 4294967295u                /* the whole trained context, if it fits */
typedef struct oriel_calibration oriel_calibration; /* oriel/tools.h */
typedef struct oriel_speed oriel_speed;             /* oriel/tools.h */

typedef struct oriel_options {
  size_t struct_size;
  uint64_t memory_bytes;  /* cap for the model and all sessions. 0: half of the free memory, on a graphics card 80 % */
  uint32_t window_tokens; /* tokens that a query sees. 0: as many as fit, up to 8192 and the trained context */
  uint32_t sessions;      /* conversations to reserve memory for, 1 to 64. 0: 1 */
  uint32_t threads;       /* on the CPU, the caller included. 0: one a core, at most 8 */
  const char *device;     /* "auto", "cpu", "vulkan", "vulkan:N", "none" (tokenizer only). NULL: auto */
  const char *cache_folder;  /* for compiled kernels and measurements. NULL: none */
  const char *system_prompt; /* begins every session, read once. NULL: none */
  oriel_log_fn log;
  void *log_user;
  oriel_progress_fn progress; /* of the load */
  void *progress_user;
  const oriel_allocator *allocator; /* NULL: malloc */
  char *error_line;                 /* receives the error line of this call; 1024 bytes hold every line */
  size_t error_line_bytes;
  const oriel_setting *settings; /* all other options, scope "load" */
  size_t setting_count;
  const oriel_calibration *calibration; /* NULL: the file of the option "calibration" */
  const oriel_speed *speed;             /* rates for predictions. NULL: no predictions */
} oriel_options;

/* ---- Plan ------------------------------------------------------------------------------------ */
/* AUTO chooses. INT8 takes 8.5 bits a value, INT4 takes 4.5. */
typedef enum oriel_kv_format { ORIEL_KV_AUTO, ORIEL_KV_F16, ORIEL_KV_INT8, ORIEL_KV_INT4 } oriel_kv_format;

typedef struct oriel_plan {
  size_t struct_size;
  uint32_t fits;            /* 0: the numbers describe the smallest plan */
  uint32_t weights_unknown; /* 1: a shape without known weights (oriel/tools.h); fits and minimum_bytes are 0 */
  uint64_t memory_bytes;    /* the cap */
  uint64_t total_bytes;     /* sum of the next five */
  uint64_t weights_bytes;
  uint64_t mapped_bytes; /* of them, in a mapped file: not bounded by memory_bytes (option "prepared_dir") */
  uint64_t kv_bytes;     /* caches and recurrent states of all sessions */
  uint64_t activation_bytes;
  uint64_t staging_bytes;
  uint64_t host_bytes;
  uint64_t minimum_bytes; /* smallest memory_bytes for these options */
  uint64_t kv_bytes_per_token;
  uint32_t window_tokens;
  uint32_t sink_tokens; /* first tokens, never evicted */
  uint32_t prefill_batch_tokens;
  uint32_t sessions;
  uint32_t context_train_tokens; /* 0: unknown */
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  double loss_nats; /* expected loss a token against an endless f16 cache */
} oriel_plan;
/* Plans for a file without a device. Returns ORIEL_OK also if nothing fits. oriel_model_load with the same options
 * allocates exactly this plan; with memory_bytes 0, pass plan->memory_bytes to it. */
ORIEL_API oriel_status oriel_plan_file(const char *path, const oriel_options *options, oriel_plan *plan);
/* The whole plan as JSON (docs/reference/describe.md). */
ORIEL_API oriel_status oriel_plan_describe(const char *path, const oriel_options *options, char *json, size_t capacity,
                                           size_t *needed);

/* ---- Model ----------------------------------------------------------------------------------- */
typedef struct oriel_model oriel_model;

/* Checks a GGUF file, plans, allocates and reads the weights. Maps only prepared weights. Oriel checks no signature.
 *  - ORIEL_ERROR_MEMORY_BUDGET: the plan does not fit.
 *  - ORIEL_ERROR_IO, ORIEL_ERROR_FORMAT, ORIEL_ERROR_UNSUPPORTED: the file.
 *  - ORIEL_ERROR_CANCELLED: the progress callback returned non-zero. */
ORIEL_API oriel_status oriel_model_load(const char *path, const oriel_options *options, oriel_model **model);
/* Destroy the sessions first: with a live session, or in a callback, this only logs an error. NULL is allowed. */
ORIEL_API void oriel_model_free(oriel_model *model);
ORIEL_API oriel_status oriel_model_get_plan(const oriel_model *model, oriel_plan *plan);
/* File, device, plan, options in force, layers, prefix and resident memory as JSON (docs/reference/describe.md). */
ORIEL_API oriel_status oriel_model_describe(const oriel_model *model, char *json, size_t capacity, size_t *needed);
/* Error line of the last failed call on the model alone, "" if none. Valid until the next call on the model. */
ORIEL_API const char *oriel_model_last_error(const oriel_model *model);

/* ---- Session --------------------------------------------------------------------------------- */
typedef struct oriel_session oriel_session;

typedef struct oriel_session_options {
  size_t struct_size;
  const char *chat_template;  /* name of a template (docs/cli.md), or Jinja text. NULL: the model's */
  const char *tools;          /* JSON list in the OpenAI form. NULL: none */
  oriel_progress_fn progress; /* of every call that reads tokens, after each prefill batch */
  void *progress_user;
  const oriel_setting *settings; /* scope "session" */
  size_t setting_count;
} oriel_session_options;
/* Takes the planned memory of one session. The texts of the options are copied outside the plan.
 * ORIEL_ERROR_STATE: all planned sessions exist. */
ORIEL_API oriel_status oriel_session_create(oriel_model *model, const oriel_session_options *options,
                                            oriel_session **session);
/* Zeros the session's memory. NULL is allowed. In a callback of the model this only logs an error. */
ORIEL_API void oriel_session_destroy(oriel_session *session);
/* Empties the session and zeros everything that the conversation left. */
ORIEL_API oriel_status oriel_session_reset(oriel_session *session);
/* Makes the running call return ORIEL_ERROR_CANCELLED, typically within 0.1 s. A message or reply opening that was being
 * read is taken back. Tokens that the app received stay. No running call: no effect. */
ORIEL_API void oriel_session_cancel(oriel_session *session);
ORIEL_API const char *oriel_session_last_error(const oriel_session *session);

typedef struct oriel_stats {
  size_t struct_size;
  uint64_t position;        /* tokens so far; all positions count from the session's start */
  uint64_t evicted;         /* tokens that no query will see again */
  uint64_t first_visible;   /* first token after the sinks that the newest token saw */
  uint64_t first_stored;    /* first token after the sinks that is still stored */
  uint32_t sinks_used;      /* tokens below this number stay */
  uint32_t window_used;     /* tokens that the newest token saw */
  uint32_t window_capacity; /* sinks and window */
  uint32_t turn_count;      /* turns with a known start */
  uint64_t device_bytes;    /* allocated now */
  uint64_t host_bytes;      /* allocated now */
} oriel_stats;
ORIEL_API oriel_status oriel_session_get_stats(const oriel_session *session, oriel_stats *stats);
/* Options in force, turns, marks, checkpoints, transcript and counters as JSON (docs/reference/describe.md). */
ORIEL_API oriel_status oriel_session_describe(const oriel_session *session, char *json, size_t capacity,
                                              size_t *needed);

/* ---- Chat ------------------------------------------------------------------------------------ */
/* Adds a message. Text is never read as control tokens. role NULL: `text` is JSON, one message or a list in the OpenAI
 * form ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content"). The text that closes a message is
 * read with the next one. A cancel or device error keeps the messages that were read; other errors add nothing. */
ORIEL_API oriel_status oriel_chat_add(oriel_session *session, const char *role, const char *text, size_t bytes);

/* What a stretch of a reply means: answer, thought or tool call (oriel/advanced.h). Return non-zero to end the reply. */
typedef struct oriel_part oriel_part;
typedef int (*oriel_part_fn)(const oriel_part *part, void *user);
typedef struct oriel_token_logprob oriel_token_logprob; /* oriel/advanced.h */
typedef struct oriel_token_event {
  int32_t id;
  const char *text; /* whole UTF-8 characters, may be empty, no NUL at the end */
  size_t text_bytes;
  float logprob;      /* with the option "top_logprobs" */
  uint32_t top_count; /* entries of top */
  const oriel_token_logprob *top;
} oriel_token_event;
/* One call a token. Text that may begin a stop text or a character is held back for a later event. Return non-zero to end
 * the reply after this token. */
typedef int (*oriel_token_fn)(const oriel_token_event *event, void *user);
/* Changes the logits of a step before a token is chosen (oriel/advanced.h). Return non-zero to end the reply. */
typedef struct oriel_step_logits oriel_step_logits;
typedef int (*oriel_step_logits_fn)(const oriel_step_logits *step, void *user);

typedef struct oriel_reply_options {
  size_t struct_size;
  uint32_t max_tokens;     /* 0: until a stop token */
  uint32_t greedy;         /* 1: always the most likely token */
  float temperature;       /* 0: 0.7 */
  uint64_t seed;           /* 0: from the clock */
  const char *schema;      /* JSON schema of the reply; needs the load option "constraints". NULL: none */
  const char *const *stop; /* texts that end the reply and are not shown; at most 16 of 1 to 256 bytes */
  size_t stop_count;
  oriel_part_fn on_part; /* the meaning of the reply, in addition to tokens */
  void *part_user;
  const oriel_setting *settings; /* scope "reply" */
  size_t setting_count;
  oriel_step_logits_fn on_logits; /* NULL: none */
  void *logits_user;
} oriel_reply_options;
typedef enum oriel_stop_reason {
  ORIEL_STOP_LENGTH = 0, /* max_tokens */
  ORIEL_STOP_TOKEN = 1,  /* end of turn or text */
  ORIEL_STOP_CALLBACK = 2,
  ORIEL_STOP_CANCELLED = 3,
  ORIEL_STOP_TEXT = 4
} oriel_stop_reason;

typedef struct oriel_generation {
  size_t struct_size;
  oriel_stop_reason stop_reason;
  uint32_t tokens;                /* generated, without the stop token */
  uint32_t prompt_tokens;         /* read for this reply */
  uint32_t prompt_tokens_evicted; /* of them, too long for the window */
  uint32_t tokens_drafted;        /* guesses verified (option "speculate") */
  uint32_t tokens_accepted;       /* correct guesses */
  double time_to_first_token_ms;
  double decode_tokens_per_s; /* after the first token; 0 for fewer than two */
} oriel_generation;
/* Opens the assistant's turn and generates until it ends. result may be NULL; a cancelled reply fills it too. */
ORIEL_API oriel_status oriel_chat_reply(oriel_session *session, const oriel_reply_options *options,
                                        oriel_token_fn on_token, void *user, oriel_generation *result);

/* ---- Save and restore ------------------------------------------------------------------------ */
#define ORIEL_SAVE_NEW 1u       /* fail if the file exists */
#define ORIEL_SAVE_OVERWRITE 2u /* replace any file; by default only a snapshot or an empty file */

/* Writes the conversation to a file: first under a temporary name, then renamed, so that a crash leaves the old file or
 * the new one. The folder must exist. Mode 0600. */
ORIEL_API oriel_status oriel_session_save(oriel_session *session, const char *path, uint32_t flags);

#define ORIEL_RESTORE_EXACT 1u /* the same layout, or ORIEL_ERROR_FORMAT */
#define ORIEL_RESTORE_READ 2u  /* if the cache cannot be carried over, read the transcript again */
/* Bit for bit; carried over to another window, batch or format, rounded once; or the text was read again. */
typedef enum oriel_restored_how {
  ORIEL_RESTORED_EXACTLY,
  ORIEL_RESTORED_CARRIED,
  ORIEL_RESTORED_READ
} oriel_restored_how;
typedef struct oriel_restored {
  size_t struct_size;
  oriel_restored_how how;
  uint32_t rounded;        /* 1: values were converted to another format */
  uint64_t tokens_held;    /* now, sinks included */
  uint64_t tokens_dropped; /* in the snapshot, not in this session */
  uint64_t tokens_read;    /* read again */
} oriel_restored;
/* Replaces the conversation by a saved one of the same model file and chat format. result may be NULL.
 * ORIEL_ERROR_FORMAT: another model or snapshot version, a damaged file. Checksums find accidents, not forgery. */
ORIEL_API oriel_status oriel_session_restore(oriel_session *session, const char *path, uint32_t flags,
                                             oriel_restored *result);

/* ---- Give memory back ------------------------------------------------------------------------ */
/* Each level includes the levels before it. The plan's JSON has the bytes that stay.
 *  - SCRATCH: activations, staging, kernels. WEIGHTS: oriel_resume reads the model file again.
 *  - CACHE: caches, written to a file in `folder` (mode 0600). ALL: without a file; transcripts are read again. */
typedef enum oriel_trim_level {
  ORIEL_TRIM_NONE,
  ORIEL_TRIM_SCRATCH,
  ORIEL_TRIM_WEIGHTS,
  ORIEL_TRIM_CACHE,
  ORIEL_TRIM_ALL
} oriel_trim_level;
/* Waits for running calls, then gives memory back until oriel_resume. A failure keeps the previous level.
 * ORIEL_ERROR_STATE: a paused reply holds the cache (CACHE, ALL); appended text in a session, or a prefix (ALL). */
ORIEL_API oriel_status oriel_trim(oriel_model *model, oriel_trim_level level, const char *folder);
/* Stops running calls between two tokens until oriel_resume, and leaves the device idle. Memory stays. */
ORIEL_API oriel_status oriel_pause(oriel_model *model);
/* Ends trim and pause. On failure the model stays trimmed and the call may be repeated. `progress` may be NULL. */
ORIEL_API oriel_status oriel_resume(oriel_model *model, oriel_progress_fn progress, void *user);

#ifdef __cplusplus
}
#endif

#endif /* ORIEL_ORIEL_H_ */
