/*
 * Oriel: an embedded, on-device LLM runtime inside one hard memory budget.
 *
 *   oriel_options options = {.struct_size = sizeof(options), .memory_bytes = 300u << 20};
 *   oriel_model *model;     oriel_model_load("model.gguf", &options, &model);
 *   oriel_session *session; oriel_session_create(model, NULL, &session);
 *   oriel_chat_add(session, "user", "Hello!", 6);
 *   oriel_chat_reply(session, NULL, on_text, my_data, NULL);
 *   oriel_session_destroy(session);
 *   oriel_model_free(model);
 *
 * Rules that hold for every call:
 *  - Errors are values. Nothing here aborts, exits, throws, prints or keeps process-wide state. The
 *    reason of a failure is one line, "WHAT HAPPENED: WHAT TO DO", given to the log callback of the
 *    options before the call returns, written to oriel_options.error_line by calls that take oriel_options, and kept by
 *    the object (oriel_session_last_error, oriel_model_last_error of oriel/sessions.h). Not logged: NULL arguments,
 *    numbers that are none of an enum's or no flags, one session twice in a list, BUFFER_TOO_SMALL, CANCELLED, what
 *    follows from a device that has failed before, and a struct without struct_size that a call only fills
 *    (oriel_..._get_..., oriel_..._info). A call that fails leaves its object as it was, unless its own comment says
 *    otherwise.
 *  - A struct argument starts with struct_size = sizeof(the struct); zero the rest: zero means
 *    default, and a library newer than the app knows which fields the app does not have. A NULL
 *    options pointer means all defaults. Structs that Oriel fills need struct_size set, too. A struct_size that ends
 *    inside a field is ORIEL_ERROR_ARGUMENT (test: PublicHeader.a_struct_size_that_ends_inside_a_field_is_none).
 *  - Text is UTF-8, given as (pointer, bytes); it may contain NUL. Paths are UTF-8 and end in NUL. Files that
 *    are read may also be given as open descriptors: "/dev/fd/N" or "/proc/self/fd/N" is the file that this
 *    process has open as N (not on Windows). It stays the caller's, and may be closed after the call.
 *  - A call that fills a buffer takes (pointer, capacity, needed): *needed is always set; when the
 *    capacity is too small it fails with ORIEL_ERROR_BUFFER_TOO_SMALL, and what the buffer then holds is
 *    of no use.
 *  - Threads: a model may be used from several threads at once; a session from one thread at a time.
 *    oriel_session_cancel alone may be called from any thread while another call runs. A call on a session that
 *    meets another one still running is refused with ORIEL_ERROR_STATE and one line, and changes nothing; one that only
 *    asks, too. So is one while the model is paused or trimmed (test: ThreadGaps.no_conversation_is_lost_...).
 *  - Callbacks, the log's included, run inside the call that they belong to. From inside one of a session's call the app
 *    may call what asks and changes nothing:
 *     - of that session oriel_session_cancel, oriel_session_get_..., oriel_session_last_error,
 *       oriel_transcript_get_info and oriel_transcript_export;
 *     - of its model oriel_model_get_..., oriel_model_last_error, oriel_prefix_get_info, and whatever asks about text.
 *    All else on the two is refused with ORIEL_ERROR_STATE and one line, and the call goes on as if nothing had
 *    been: every other call on that session, and oriel_session_create, oriel_session_recover, oriel_prefix_clear,
 *    oriel_trim, oriel_pause and oriel_resume. oriel_session_destroy and oriel_model_free then do nothing but say so.
 *    From inside a callback of oriel_session_create, oriel_prefix_clear, oriel_trim, oriel_pause and oriel_resume those
 *    six are refused likewise, and oriel_model_free from inside one of any call on the model.
 *  - A device that was lost, or did not answer in time, does not come back by itself: one line says so, and from then
 *    on every call on the session but destroy, cancel and oriel_session_get_... returns ORIEL_ERROR_DEVICE at once,
 *    without a line and without waiting, until oriel_session_recover (oriel/sessions.h) has made the device's part anew,
 *    there or elsewhere. oriel_session_get_tokens still gives the tokens that were held.
 *  - What was said does not stay behind: after oriel_session_reset and oriel_session_destroy all memory that held
 *    the conversation is zeros (on a lost device what the host can reach of it), and so is working memory before it
 *    is given back, and what held token ids on the stack (test: Forgetting.no_stack_says_which_tokens_were_read). Copies that the app asked for (snapshots, text and logits handed to it) are the app's.
 *  - Threads of its own the library starts in two places, and the app's callbacks are not called on them:
 *    those that compute on the CPU (oriel_options.cpu_threads), and up to four that compile kernels for a
 *    Vulkan device during oriel_model_load and oriel_resume (and calls of oriel/tools.h), gone when those return.
 *  - Stack: a call needs at most 256 KiB of stack on the thread that makes it, without the app's callbacks and what a
 *    Vulkan driver needs besides. Oriel gives its own threads stacks of their own, and adds the app's thread-local data
 *    where the C library takes that from a stack. Stacks are the system's memory, not the plan's.
 *  - ABI: structs grow at their ends only, and no number, name or argument of what is there changes, within one
 *    MAJOR.MINOR (docs/linking.md).
 *  - Model files are read, never mapped. What lies before the tensors' data is read once, and all that is checked
 *    and used is that copy; weights are read when they are wanted, those that stay on file (oriel_options.on_file)
 *    again and again while the model is there. A file that somebody writes to or cuts off while a call reads it, or has
 *    written to since the model was loaded, is ORIEL_ERROR_IO. One that is removed, or replaced by another under its
 *    name, is read as it was.
 *  - JSON (messages, tools, documents, variables, schemas) is RFC 8259's: at most 64 MiB, 64 lists and objects within
 *    each other and 1048576 names in one object, else ORIEL_ERROR_ARGUMENT. Reading takes time in proportion to the
 *    bytes (n log n for the names of an object) and checks for cancellation at least once in 65536 bytes. Where a name
 *    comes again in an object, its last value counts (tests/unit/test_json_reader.cpp).
 *  - Memory: everything is taken in oriel_model_load and oriel_session_create, in the amounts the
 *    plan states. Generating takes none. Borrowed for the length of a call only: by every call that takes a model
 *    file what lies before its tensors' data (at most twice its bytes, 128 MiB), which oriel_model_load gives back
 *    before it takes memory for weights and cache; there, room to read weights into, no larger than what the
 *    session will take or one row of a matrix (of a matrix that is transposed,
 *    a head's rows several times); by oriel_tokenize 46 bytes for
 *    each byte of the longest word; by a session the same for a text with an unbroken word above 1 KiB, and nothing
 *    for any other text however long (where special tokens overlap each other, all they cover counts as a word); by
 *    oriel_render_tokens the rendered text besides; by calls that take JSON at most 8 bytes for each byte of it, and
 *    64 KiB; by calls that run a chat template besides 1 MiB, 32 bytes for each byte of the template, 8 for each byte of
 *    messages, tools, documents and variables, and 256 for each message in a struct (by oriel_model_load for the file's
 *    own template, too); by a reply that is held to a schema, a grammar or tools 64 MiB while that is compiled, its JSON
 *    included; for saving to a file, restoring from one and recovering; and for reading
 *    compiled pipelines that cache_dir keeps when they take more than the upload ring has. What the Vulkan driver
 *    allocates for its own bookkeeping is outside the plan: Oriel cannot see it.
 */
#ifndef ORIEL_ORIEL_H_
#define ORIEL_ORIEL_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(ORIEL_EXPORT) /* to build a DLL without a .def file */
#define ORIEL_API __declspec(dllexport)
#elif defined(_WIN32) && defined(ORIEL_SHARED) /* by apps that link the DLL */
#define ORIEL_API __declspec(dllimport)
#elif defined(__GNUC__)
#define ORIEL_API __attribute__((visibility("default")))
#else
#define ORIEL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ORIEL_VERSION_MAJOR 0
#define ORIEL_VERSION_MINOR 1
#define ORIEL_VERSION_PATCH 0

/* ---- Status ---------------------------------------------------------------------------------- */

typedef enum oriel_status {
  ORIEL_OK = 0,
  ORIEL_ERROR_ARGUMENT = 1,      /* a NULL pointer, a value out of range, an unknown name */
  ORIEL_ERROR_IO = 2,            /* a file cannot be opened or read, or changed while it was read */
  ORIEL_ERROR_FORMAT = 3,        /* a file not GGUF or a snapshot not one, truncated, or inconsistent */
  ORIEL_ERROR_UNSUPPORTED = 4,   /* well formed, but this build cannot run it; the log says what */
  ORIEL_ERROR_MEMORY_BUDGET = 5, /* does not fit memory_bytes; oriel_plan.minimum_bytes would do */
  ORIEL_ERROR_OUT_OF_MEMORY = 6, /* the system or the device refused memory that was planned */
  ORIEL_ERROR_NO_DEVICE = 7,     /* the device asked for is not there or not usable */
  ORIEL_ERROR_DEVICE = 8,        /* the device was lost or its driver failed; oriel_session_recover */
  ORIEL_ERROR_TIMEOUT = 9,       /* the device did not answer in device_timeout_ms; as DEVICE */
  ORIEL_ERROR_CANCELLED = 10,    /* oriel_session_cancel, or a callback asked to stop loading */
  ORIEL_ERROR_BUFFER_TOO_SMALL = 11,
  ORIEL_ERROR_STATE = 12,    /* not allowed now, e.g. generating from an empty session */
  ORIEL_ERROR_CONTEXT = 13,  /* pinned text longer than the window, or a rewind beyond what it holds */
  ORIEL_ERROR_TEXT = 14,     /* text that is not valid UTF-8 */
  ORIEL_ERROR_INTERNAL = 15, /* a defect in Oriel; please report it */
  ORIEL_ERROR_SPEED = 16     /* slower than min_tokens_per_s whatever is chosen */
} oriel_status;

/* A short English name such as "does not fit the memory given"; never NULL. */
ORIEL_API const char *oriel_status_text(oriel_status status);

/* "0.1.0" */
ORIEL_API const char *oriel_version(void);

/* ---- Callbacks ------------------------------------------------------------------------------- */

typedef enum oriel_log_level {
  ORIEL_LOG_ERROR = 0,   /* one per failed call: "WHAT HAPPENED: WHAT TO DO" */
  ORIEL_LOG_WARNING = 1, /* it works, but not as one might expect */
  ORIEL_LOG_INFO = 2,    /* choices made: device, plan, kernel variants */
  ORIEL_LOG_DEBUG = 3
} oriel_log_level;

/* `message` has no newline and lives until the callback returns. Called on the calling thread, in the middle of the
 * call: what may be called from here, the rules above say. */
typedef void (*oriel_log_fn)(oriel_log_level level, const char *message, void *user);

/* `done` of `total` bytes of weights are on the device (oriel/tools.h: of measurements or tests, are done;
 * oriel_session_options: of tokens, are read). Return non-zero to stop. oriel_model_load calls it from its first
 * moment on and in every phase, so that a stop never waits for long: before there are weights on the device with
 * `done` 0, where `total` is the file's size until the weights are counted; after the last of them with `done` equal
 * to `total`, as often as that takes. */
typedef int (*oriel_progress_fn)(uint64_t done, uint64_t total, void *user);

/* Host memory. `bytes` is the same in both calls; blocks are aligned to 64 bytes. NULL = refused. */
typedef struct oriel_allocator {
  void *(*allocate)(size_t bytes, void *user);
  void (*release)(void *block, size_t bytes, void *user);
  void *user;
} oriel_allocator;

/* ---- Options --------------------------------------------------------------------------------- */

typedef enum oriel_device_kind {
  /* Vulkan: discrete, integrated, virtual, other; then the CPU. Vulkan in software only where this library has no
   * vector instructions for the CPU: it is the slower way to the same processor. A Vulkan that does not work or has
   * no room for the model is a warning, and the CPU is used. */
  ORIEL_DEVICE_AUTO = 0,
  ORIEL_DEVICE_VULKAN = 1, /* Vulkan or an error */
  ORIEL_DEVICE_CPU = 2,    /* the CPU's vector instructions, or plain code where there are none */
  ORIEL_DEVICE_NONE = 3    /* load the header and the tokenizer only; no session can be made */
} oriel_device_kind;

typedef enum oriel_kv_format {
  ORIEL_KV_AUTO = 0,
  ORIEL_KV_F16 = 1,  /* 16 bits a value */
  ORIEL_KV_INT8 = 2, /* 8.5 bits: groups of 32 share an f16 scale */
  ORIEL_KV_INT4 = 3  /* 4.5 bits */
} oriel_kv_format;

/* How the states of recurrent layers are stored, between one step and the next. */
typedef enum oriel_state_format {
  ORIEL_STATE_AUTO = 0,
  ORIEL_STATE_F32 = 1,
  ORIEL_STATE_F16 = 2, /* 16 bits a value */
  ORIEL_STATE_INT8 = 3 /* 8 bits a value, and an f16 scale for each 32 */
} oriel_state_format;

/* Which weights stay in the model's file and are read when tokens need them. The results are the same to the bit. */
typedef enum oriel_on_file {
  /* Tables of which a token needs one row (Gemma 4's per-layer embeddings). Experts, too, where the model does not
   * fit with them. */
  ORIEL_ON_FILE_AUTO = 0,
  ORIEL_ON_FILE_NONE = 1, /* all weights are held */
  ORIEL_ON_FILE_ROWS = 2, /* such tables, never experts */
  ORIEL_ON_FILE_ALL = 3   /* such tables and experts */
} oriel_on_file;

/* Whether the kernels that a model needs are tested on its Vulkan device before they are used (docs/drivers.md). */
typedef enum oriel_device_test {
  /* Where there is a cache_dir: those that were not tested with this driver yet, once. What was found is kept there and
   * believed. */
  ORIEL_DEVICE_TEST_AUTO = 0,
  ORIEL_DEVICE_TEST_ALWAYS = 1, /* all of them at every load, with or without cache_dir */
  /* Nothing is tested, nothing that was found before is believed, and no mark is made where the driver is at work. What
   * a device is known for (oriel_device_info.faults) is left off all the same. */
  ORIEL_DEVICE_TEST_NEVER = 2
} oriel_device_test;

/* What a model was measured to lose, and how fast a device was measured to be: oriel/tools.h has both. */
typedef struct oriel_calibration oriel_calibration;
typedef struct oriel_speed oriel_speed;

#define ORIEL_WINDOW_DEFAULT 8192    /* tokens of a window that is chosen, at most */
#define ORIEL_WINDOW_MAX 4294967295u /* in place of a number: the whole trained context, where it fits */

/* An option by its name, and its value as text: {"kv", "k8v4"}. oriel_option_list() lists them. */
typedef struct oriel_setting {
  const char *name;
  const char *value;
} oriel_setting;

/* Every option as a JSON object on one line: {"options": [{"name", "flag", "scope", "layer", "type", "default", "least",
 * "most", "choices", "help"}, ...]}. Ends in NUL, which `needed` counts.
 *  - scope: "load" (oriel_options), "session" (oriel_session_options) or "reply" (oriel_generate_options).
 *  - type: "bytes", "count", "number", "choice", "flag", "text", "list" or "file".
 *  - layer: "front", "advanced" or "laboratory".
 *  - flag: the spelling of the program `oriel`, without dashes; "": it has none.
 *  - least, most: of a count, a number, or each element of a list.
 *  - choices: words that the value may be. */
ORIEL_API oriel_status oriel_option_list(char *json, size_t capacity, size_t *needed);

typedef struct oriel_options {
  size_t struct_size;
  /* Hard cap for the model and its sessions together, in bytes: weights, cache, activations, staging
   * and host tables. 0: half of what the system has free. */
  uint64_t memory_bytes;
  /* Tokens every query sees besides the sinks, itself included. 0: the largest window that fits, up to the
   * trained context and ORIEL_WINDOW_DEFAULT tokens. ORIEL_WINDOW_MAX: up to the trained context. 1 to 4194304; one
   * that is longer than the trained context with its sinks is a warning, as replies get worse there. */
  uint32_t window_tokens;
  /* First tokens of the session that are never evicted. 0: 4. UINT32_MAX: none. */
  uint32_t sink_tokens;
  /* Length in tokens of a prefix to pin (a rendered system prompt): the sinks grow to cover it.
   * ORIEL_ERROR_CONTEXT when it is longer than window_tokens or, with window_tokens 0, than the trained
   * context less 16. */
  uint32_t pinned_tokens;
  /* The prefill batch: prompt tokens processed together, called a chunk here. 0: chosen. 1 to 512. */
  uint32_t chunk_tokens;
  /* Formats of keys and values behind the sinks (which are f16). ORIEL_KV_AUTO: the pair of least
   * expected loss for the memory given. */
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  oriel_device_kind device;
  /* With ORIEL_DEVICE_VULKAN: 1 + the index that oriel_device_list gives. 0: choose. */
  uint32_t device_number;
  /* Longest wait for one submission to a Vulkan device, in milliseconds. Time in which this process did not run
   * (stopped, the machine asleep) does not count. 0: 60000. A step on the CPU is never late. */
  uint32_t device_timeout_ms;
  /* Folder for compiled pipelines, measured rates, measured choices of kernels and what was found out about drivers;
   * created if missing. NULL or "": nothing is written or read. */
  const char *cache_dir;
  oriel_log_fn log;
  void *log_user;
  oriel_progress_fn progress;
  void *progress_user;
  /* NULL: malloc. Copied; must stay valid until the model is freed. Called from every thread that calls
   * Oriel. */
  const oriel_allocator *allocator;
  /* What the model at hand loses by windows and formats. Read by the call only. NULL: what calibration_file
   * says. */
  const oriel_calibration *calibration;
  /* A window that is chosen is at least this long, past the trained context if need be; what cannot hold
   * it does not fit. More than window_tokens: ORIEL_ERROR_ARGUMENT. 0: any. At most 4194304. With more than
   * ORIEL_WINDOW_DEFAULT it is the window, unless that is ORIEL_WINDOW_MAX. */
  uint32_t min_window_tokens;
  /* Threads that compute on the CPU, the caller's included; they are made with the model and end with it.
   * Never more than the processors this process may use. 0: one per core, at most 8. */
  uint32_t cpu_threads;
  uint32_t f16_layer_count;
  /* f16_layer_count numbers, one for each layer of the model: the cache of a layer with a number other than
   * 0 stays in f16, whatever the formats. Read by the call only. NULL: none. */
  const uint8_t *f16_layers;
  /* window_share_count numbers, one for each layer of the model: it sees so many 256ths of the window, the latest tokens
   * behind the same sinks; 0: all of it. One number is that of all layers. Layers with windows of their own are not asked,
   * and those that read another layer's memory see what that one sees. ORIEL_ERROR_ARGUMENT for another count, and for
   * more different numbers than make ORIEL_LAYER_GROUPS groups. Read by the call only. NULL: all see all of it; where
   * window_tokens is 0, the longest window does not fit and a calibration has measured windows by layer, what it found
   * to lose least. */
  const uint8_t *window_shares;
  /* Rates of the device that the plan is for: fills in the predictions of the plan. Read by the call
   * only. NULL: nothing is predicted. */
  const oriel_speed *speed;
  /* Least tokens/s, by that prediction, of a decoded token that sees a full window: windows and formats that
   * are slower are not chosen. ORIEL_ERROR_SPEED, the log naming the best, when all are. Needs `speed`
   * (ORIEL_ERROR_ARGUMENT). 0: any. */
  double min_tokens_per_s;
  /* Optional Vulkan features to do without, by name, separated by commas or spaces ("subgroup,integer_dot"; "all"):
   * the device is then used as one that does not have them, for tests and around faulty drivers. Read by
   * the call only. A name that is not known is ORIEL_ERROR_ARGUMENT; the log says which are. NULL: none. */
  const char *disabled_features;
  /* 1: oriel_speed_measure measures even where cache_dir has rates, and keeps the new ones: the device may be
   * warmer, or busier, than it was then. 0: not. */
  uint32_t measure_again;
  uint32_t window_share_count; /* of window_shares */
  /* A file of `oriel calibrate`, used like `calibration` by every call that plans for a model file.
   *  - NULL: "<model path>.calibration.json" if there is one. One that is damaged, or was measured on another
   *    model, is a warning and is not used.
   *  - "": none. Published priors are used.
   *  - A path: this file. What is wrong with it is an error (ORIEL_ERROR_IO, ORIEL_ERROR_FORMAT).
   * Not read when `calibration` is given. */
  const char *calibration_file;
  /* Such a file is kept open while the model is there. It may be renamed or removed meanwhile, but when somebody has
   * written to it or cut it off, a call that needs to read it is ORIEL_ERROR_IO. What it had committed before stays, as
   * after a cancel; a token of a reply may then have been shown that is not committed. */
  oriel_on_file on_file;
  /* Experts that each layer has room for while the others stay in the file: as many as a token uses, or more up to
   * all of them, which is faster. ORIEL_ERROR_ARGUMENT for other numbers, but not for models without experts. 0:
   * chosen, as many as do not raise loss_nats: finer formats and a longer window come first. All are held where that does
   * not raise it. */
  uint32_t expert_slots;
  /* Of models whose layers keep a state (oriel_plan.groups): how many earlier states are kept, so that
   * oriel_session_rewind need not read a conversation again from its beginning. Each takes as many bytes as the state
   * itself (oriel_plan.state_bytes / state_slots). 0: chosen, up to 4 where they take little beside the window
   * or memory is left. UINT32_MAX: none. At most 32. Other models have no use for any, and no number changes a byte of theirs. */
  uint32_t checkpoints;
  /* Models without recurrent layers do without. ORIEL_STATE_AUTO: f32, or f16 where the bytes that it saves lengthen
   * the window by more than its quantisation error is expected to cost. int8 is only used where it is asked for. */
  oriel_state_format state_format;
  /* Non-zero: replies can be held to a JSON schema, a grammar or the tools' schemas (oriel_generate_options). Takes
   * memory for the vocabulary as a tree, an automaton and a mask: oriel_plan.constraint_bytes. */
  uint32_t constraints;
  /* Sessions that there is memory for: so many caches and host tables, one copy of everything else (oriel/sessions.h).
   * 0: 1. At most 64. */
  uint32_t sessions;
  /* Windows of sessions that are not to have window_tokens (or the window that is chosen): session_window_count numbers,
   * of the first so many sessions; 0: as the others. Each at most 4194304. oriel_session_options.window_tokens takes one
   * of them. Read by the call only. */
  const uint32_t *session_windows;
  uint32_t session_window_count;
  /* Room for a prefix, text that was processed once and stands at the beginning of every session (oriel/sessions.h): the
   * sinks become so many tokens, held once for all sessions. As pinned_tokens otherwise. 0: none. */
  uint32_t prefix_tokens;
  /* A system message that every session begins with: counted and processed by oriel_model_load, as a prefix. In the
   * model's own chat format. Read by the call only. NULL: none. */
  const char *system_prompt;
  size_t system_prompt_bytes;
  /* A file to take the prefix from: a snapshot, or keys and values that were trained (docs/sessions.md). Counted and read
   * by oriel_model_load. Not together with system_prompt. A trained one that is a descriptor (/dev/fd/N) cannot be read
   * again: oriel_session_recover is then ORIEL_ERROR_IO. NULL: none. */
  const char *prefix_file;
  /* Of each session, for the text of its messages (oriel/sessions.h). 0: none is kept. At most 2^30. */
  uint32_t transcript_bytes;
  uint32_t reserved_sessions;
  /* What of a Vulkan device is used though the device is known, or was found, to be faulty there: names as in
   * disabled_features, "long_submissions" (which some devices are not given) and "device" (one that would be refused).
   * Nothing is turned on that the device does not have. Read by the call only. NULL: none. */
  const char *enabled_features;
  oriel_device_test device_test;
  /* Bits that activations are rounded to before the CPU multiplies them with quantised weights: 16, or 8, with which a
   * prompt takes up to a third less time where the processor has AVX-512 VNNI, and every token is a little less exact
   * (docs/performance.md has the cost). 0: 16. Others: ORIEL_ERROR_ARGUMENT. Vulkan devices do without. */
  uint32_t activation_bits;
  /* Next tokens that are guessed and verified in one step, at most (speculative decoding, docs/speculation.md): what
   * followed the last few tokens when they stood in the conversation before. The reply is the same, to the bit, as without.
   * Where guesses are often right, as in text that is copied or repeated, it comes faster; elsewhere none are verified.
   * Takes memory: oriel_plan.draft_bytes; with the same window the cache is the same, to the byte. Models that keep a state do without, as do plans for several sessions and
   * those with experts on file: oriel_plan.draft_tokens is then 0. 0: none. At most 15; steps have at most chunk_tokens
   * tokens. */
  uint32_t draft_tokens;
  /* Tokens that a query sees at a time of what came back (recall_bytes), in f16 like the sinks. 0: 128, or an eighth of a
   * short trained context. At most 1024; with a warning fewer, where a window that is chosen would have less than 32
   * tokens in the trained context. */
  uint32_t recall_tokens;
  /* A file of a small model that guesses next tokens where the conversation has nothing to guess by: the assistant of a
   * Gemma 4 (architecture "gemma4-assistant"), whose layers read this model's keys and values and remember nothing
   * themselves. Its weights are part of the plan (oriel_plan.draft_weights_bytes); draft_tokens 0 is 3 with it. For one
   * session: ORIEL_ERROR_ARGUMENT with more. ORIEL_ERROR_FORMAT where it does not belong to the model. Read by the call
   * only, but where weights are read again (oriel_resume, oriel_recover) the file has to be there. NULL: none. */
  const char *draft_model;
  /* Turns that have left the window are kept in a file, and come back when a message asks for them (docs/recall.md): most
   * bytes of that file, for each session. It is no part of memory_bytes; the index over it is (8 bytes a token) and so are
   * the slots of what comes back: oriel_plan.recall_memory_bytes. The file is private and goes with the session.
   * ORIEL_ERROR_ARGUMENT where it has no room for 16 tokens, or without a folder; ORIEL_ERROR_UNSUPPORTED together with a
   * prefix. Models that keep a state do without, as do those that norm keys behind RoPE (Hunyuan), and windows that are
   * given with less than 32 tokens: oriel_plan.recall_tokens is then 0. 0: what left the window is gone. */
  uint64_t recall_bytes;
  /* Folder of that file, which must be there. Read by oriel_model_load. NULL: cache_dir, which is made where it is
   * missing. */
  const char *recall_dir;
  /* A buffer of yours for the line of a call that takes these options and fails: oriel_model_load, oriel_plan_file,
   * oriel_inspect, ... The call begins by making it "", and never writes more than error_line_bytes, the NUL at the end
   * included; 1024 bytes hold every line. It is not used after the call: later lines are those of
   * oriel_session_last_error and oriel_model_last_error (oriel/sessions.h). NULL: none. */
  char *error_line;
  size_t error_line_bytes;
  /* Options by name, of the scope "load". A value replaces the field of the same option. Read by the call only. An unknown
   * name, or a value that is not allowed, is ORIEL_ERROR_ARGUMENT with a line that names it. */
  const oriel_setting *settings;
  size_t setting_count;
} oriel_options;

/* ---- Model ----------------------------------------------------------------------------------- */

typedef struct oriel_model oriel_model;

/* Loads a GGUF file: checks all of it, plans, refuses (ORIEL_ERROR_MEMORY_BUDGET) or takes the
 * planned memory and streams the weights to the device. The file may be removed afterwards, but where weights stay on
 * file its room on the disk is given back only with the model. What a file says is never trusted, but that it is the
 * one its author made is for the app to find out: Oriel checks no signature. */
ORIEL_API oriel_status oriel_model_load(const char *path, const oriel_options *options, oriel_model **model);
/* NULL is allowed. Its sessions must have been destroyed: else nothing happens, and the log says so. */
ORIEL_API void oriel_model_free(oriel_model *model);

/* ---- Session --------------------------------------------------------------------------------- */

typedef struct oriel_session oriel_session;

/* How a conversation becomes text. Texts are read by the call, and those that are given to oriel_session_create by every
 * call of the session: they stay as they are until it is destroyed. */
typedef struct oriel_chat_options {
  size_t struct_size;
  /* The name of a chat format ("gemma3"; a wrong one is answered with all of them) or the text of a Jinja
   * template, which is run. NULL: the model's own. */
  const char *chat_template;
  /* Non-zero: models that can think before they answer are told not to. */
  uint32_t no_thinking;
  /* For formats that tell the model a date: year * 10000 + month * 100 + day. 0: 20240726. To a template's clock it is
   * noon of that day. */
  uint32_t date;
  /* Non-zero: templates are told to let the model think (enable_thinking is true; without either it is undefined, and
   * the template decides). */
  uint32_t thinking;
  uint32_t reserved;
  /* Tools that the model may call: a JSON list in the OpenAI form, [{"type": "function", "function": {"name",
   * "description", "parameters"}}, ...] or the functions themselves. A template that knows no tools leaves them out,
   * which is a warning; without a template they are ORIEL_ERROR_UNSUPPORTED. NULL: none. */
  const char *tools;
  size_t tools_bytes;
  /* Documents to answer from: a JSON list, as the template wants its items. NULL: none. */
  const char *documents;
  size_t documents_bytes;
  /* A JSON object with more of the template's variables, e.g. {"reasoning_effort": "low"}. Their text is never read as
   * control tokens, as that of messages, tools and documents is not. The names that Oriel sets are ORIEL_ERROR_ARGUMENT:
   * messages, add_generation_prompt, bos_token, eos_token, tools and documents, and enable_thinking where no_thinking or
   * thinking says it (tests/unit/test_template_variables.cpp). NULL: none. */
  const char *variables;
  size_t variables_bytes;
} oriel_chat_options;

typedef struct oriel_session_options {
  size_t struct_size;
  /* Rotary position of the session's first token. Positions only matter relative to each other, so this
   * changes nothing but which arithmetic is exercised: for tests of very long conversations. At most 2^62. */
  uint64_t first_position;
  /* Chats evict whole turns (a user's message and its reply): once the window has moved past the start of a turn,
   * the model sees the first whole turn still inside the window and what follows (and the sinks). What is left of
   * a turn longer than half the window, and of the last one, is seen token by token; text before the first turn
   * counts as one. Non-zero: all is evicted token by token, as text that was appended without oriel_chat_add
   * always is. */
  uint32_t split_turns;
  /* Chat format, thinking, date, tools. NULL: the model's own and the defaults. The struct is read by the call only,
   * the texts that it points to are not copied. */
  const oriel_chat_options *chat;
  /* For measuring at a depth without getting there: the session starts as if so many tokens had been
   * appended, with zeros for what they left in the cache, and so with the wrong text but the right speed.
   * Reset returns to an empty context. At most 2^62. */
  uint64_t assumed_tokens;
  /* What forgetting means. Where layers attend, tokens that the window has moved past are seen no more. A recurrent
   * state carries a trace of everything that was ever read. Non-zero: when turns have left the window, oriel_chat_reply
   * first makes the state anew, by reading again what attention still sees (the sinks and the turns in the window),
   * so that the reply follows from that alone, as in a conversation that had consisted of nothing else. What leaves
   * the window during a reply is in the state until the next one. It costs a prefill of what is seen, which in a full
   * window is due about once a reply (oriel_stats.tokens_read_again); when that is cancelled or fails, the next call
   * that appends, and the next reply, does it first. What was forgotten so does not come back when that reply is taken
   * back. Text that was appended without oriel_chat_reply is never forgotten so. ORIEL_ERROR_ARGUMENT
   * together with split_turns. Without effect on models that keep no state. */
  uint32_t forget_evicted;
  uint32_t reserved;
  /* How far a call has got with the tokens that it reads: those of the text, the messages or the opening of a reply that
   * it appends, and those that it reads again, to go back or to forget (oriel_stats.tokens_read_again). Called inside that
   * call after every prefill batch, the last one included, where done == total.
   *  - Within a call `done` grows each time, and done <= total.
   *  - `total` is exact from the beginning, but for three things. Of a list of messages (oriel_chat_add_json,
   *    oriel_transcript_import), and of a transcript that is read, those behind the one that is being read are estimated
   *    by their bytes. The opening of a reply is counted once everything that had to be read again is read. And a
   *    message for which turns come back (oriel_options.recall_bytes) is read again with them, which is counted once the
   *    opening is read.
   *  - Not for tokens that are generated, evaluated or embedded.
   *  - Non-zero cancels the call, as oriel_session_cancel does from here.
   * A text of more than some 2,000 bytes is tokenised twice, to count it. NULL: none. */
  oriel_progress_fn progress;
  void *progress_user;
  /* Takes the free session whose window is the shortest of at least so many tokens. ORIEL_ERROR_CONTEXT: none is that
   * long. 0: the free session with the longest. */
  uint32_t window_tokens;
  uint32_t reserved_window;
  /* As in oriel_options, of the scope "session". Texts stay as long as those of `chat`. */
  const oriel_setting *settings;
  size_t setting_count;
} oriel_session_options;

/* Takes the session's planned memory. ORIEL_ERROR_STATE when the model has as many sessions as oriel_options.sessions
 * says. A model with a prefix: the session begins behind it. On a device that was lost before, while the model is trimmed
 * or paused, too, the session is lost as the others are: oriel_session_recover makes both anew. */
ORIEL_API oriel_status oriel_session_create(oriel_model *model, const oriel_session_options *options,
                                            oriel_session **session);
/* NULL is allowed. All memory of the session is overwritten with zeros. Inside a callback of the session's own call
 * nothing happens, and the log says so. */
ORIEL_API void oriel_session_destroy(oriel_session *session);
/* Back to an empty context: cache, activations, logits, staging and everything else that the conversation left are
 * overwritten with zeros. */
ORIEL_API oriel_status oriel_session_reset(oriel_session *session);

/* Makes the running call return ORIEL_ERROR_CANCELLED as soon as the device has done what it was given: on
 * Vulkan about 40 ms of work twice over, on the CPU one operation. The chunk of tokens it was at is as if it
 * had not begun; what was committed before stays, but for a message of oriel_chat_add or the opening of a
 * reply, which are taken back whole where the ring's slack allows (and, in models that keep a state, a checkpoint stands
 * where they begin: that of the latest message always does, unless there are none). A generated token that the app was
 * given
 * is finished first. A call that has nothing further to begin completes.
 *
 * It counts for the call that runs when it arrives, from inside a callback for the call of that callback, and for none
 * after it. Without a running call nothing happens: a thread that cancels a call which another is about to make may come
 * too early, and cancels again, or lets a callback of that call stop it. Callable from any thread. */
ORIEL_API void oriel_session_cancel(oriel_session *session);

/* ---- Chat ------------------------------------------------------------------------------------ */

typedef struct oriel_logit_bias {
  int32_t id;
  float bias; /* -INFINITY: never */
} oriel_logit_bias;

/* What a stretch of a reply is. */
typedef enum oriel_part_kind {
  ORIEL_PART_TEXT = 0,       /* of the answer */
  ORIEL_PART_THOUGHT = 1,    /* what the model thinks before it answers, without the markers around it */
  ORIEL_PART_CALL_BEGUN = 2, /* a tool call: text is the tool's name */
  ORIEL_PART_CALL_ARGUMENTS =
      3,                    /* more of its arguments: joined they are one JSON object, whatever the model wrote */
  ORIEL_PART_CALL_ENDED = 4 /* the call is complete; one that is cut off never is */
} oriel_part_kind;

typedef struct oriel_part {
  size_t struct_size;
  oriel_part_kind kind;
  uint32_t call;    /* of a call: its number in the reply, from 0 */
  const char *text; /* whole UTF-8 characters; not NUL-terminated */
  size_t text_bytes;
} oriel_part;

/* Return non-zero to stop after this token. */
typedef int (*oriel_part_fn)(const oriel_part *part, void *user);

/* How free the model is to call tools (oriel_chat_options.tools). */
typedef enum oriel_tool_choice {
  ORIEL_TOOLS_FREE = 0,     /* as it likes, and as it writes them: arguments may be wrong */
  ORIEL_TOOLS_CHECKED = 1,  /* as it likes; a call that it begins names a tool, with arguments valid by its schema */
  ORIEL_TOOLS_REQUIRED = 2, /* the same, and the reply is such a call */
  ORIEL_TOOLS_NONE = 3      /* no call is read: all is text */
} oriel_tool_choice;

/* When the next tokens are guessed (oriel_options.draft_tokens). */
typedef enum oriel_draft {
  ORIEL_DRAFT_AUTO = 0,   /* where that is expected to take less time */
  ORIEL_DRAFT_ALWAYS = 1, /* wherever there is anything to guess by: to measure, and for tests */
  ORIEL_DRAFT_NEVER = 2
} oriel_draft;

typedef struct oriel_generate_options {
  size_t struct_size;
  uint32_t max_tokens;  /* 0: until a stop token */
  uint32_t greedy;      /* non-zero: always the most likely token (the lowest id of equals) */
  uint64_t seed;        /* 0: taken from the clock */
  float temperature;    /* 0: 0.7 */
  uint32_t top_k;       /* 0: 40; UINT32_MAX: all */
  float top_p;          /* 0: 0.95; 1: all */
  float min_p;          /* 0: 0.05; negative: off */
  float repeat_penalty; /* 0: 1 = off; divides positive logits of the last tokens, multiplies others */
  uint32_t ignore_stop; /* non-zero: stop tokens are generated like any other */
  /* Texts that end the reply, stop_count strings in UTF-8 that end in NUL (at most 16, of 1 to 256 bytes). The one that
   * is complete first ends it, of several that end at the same byte the longest. What it matches is never shown, in
   * whole or in part: what may be its beginning is held back, and comes with a later event, where it turns out to be
   * none. Its tokens are part of the session, up to the one that completes it. NULL: none. */
  const char *const *stop;
  size_t stop_count;
  /* Added to logits behind the penalties, at most 1024; of one token they add up. Where all tokens are forbidden the
   * call ends with ORIEL_ERROR_ARGUMENT. NULL: none. */
  const oriel_logit_bias *logit_bias;
  size_t logit_bias_count;
  float presence_penalty;  /* taken from the logit of every token in the window of repetition; -10 to 10 */
  float frequency_penalty; /* the same, times how often it is there */
  uint32_t repeat_window;  /* tokens that the three penalties look back; 0: 64. At most 256 */
  /* The reply has at least so many tokens: until then stop tokens are never chosen (with ignore_stop they are like any
   * other), and a stop text that is complete before is text like any other. At most max_tokens. */
  uint32_t min_tokens;
  /* Non-zero: events carry the chosen token's log-probability, and the top_logprobs (at most 20) most likely tokens with
   * theirs: of the model's own distribution, before everything above. */
  uint32_t logprobs;
  uint32_t top_logprobs;
  /* What the reply has to be, one of the two (oriel_options.constraints is needed). Where a model thinks first, it
   * holds for what comes behind the thought. Compiled by the call; while generating nothing is allocated.
   *  - A JSON schema (draft 2020-12; docs/structured-output.md says which keywords, others are refused by name). The
   *    reply is a JSON value that is valid by it, or was cut by max_tokens.
   *  - A GBNF grammar with a rule `root`.
   * Compiling takes at most 0.5 s of one core, and so does the choice of a token. What would take longer is
   * ORIEL_ERROR_UNSUPPORTED: when it is compiled, or at the token where a grammar has too many readings of the text.
   * oriel_session_cancel() is heard within 0.1 s in both. Tests: test_schema_work.cpp, test_grammar_work.cpp. */
  const char *json_schema;
  size_t json_schema_bytes;
  const char *grammar;
  size_t grammar_bytes;
  /* With one of these: it holds only from behind the first place where the reply has this text, until it is
   * complete; what is before and behind is free. NULL: it holds for all of the reply. */
  const char *trigger;
  oriel_tool_choice tool_choice;
  uint32_t reserved;
  /* What the reply means, as it comes; besides the tokens of oriel_token_fn. NULL: nobody asks. */
  oriel_part_fn on_part;
  void *part_user;
  oriel_draft draft;
  uint32_t reserved_draft;
  /* As in oriel_options, of the scope "reply". */
  const oriel_setting *settings;
  size_t setting_count;
} oriel_generate_options;

typedef struct oriel_token_logprob {
  int32_t id;
  float logprob; /* natural logarithm of the probability */
} oriel_token_logprob;

/* One for each token. What is still held back when the reply ends (the beginning of a character or of a stop text) comes
 * as one more, with the last id and without log-probabilities. */
typedef struct oriel_token_event {
  int32_t id;
  const char *text; /* whole UTF-8 characters only; may be empty; not NUL-terminated */
  size_t text_bytes;
  float logprob;                  /* with oriel_generate_options.logprobs; else 0 */
  uint32_t top_count;             /* of top */
  const oriel_token_logprob *top; /* the most likely tokens, best first */
} oriel_token_event;

/* Return non-zero to stop after this token: then it is not called again, so that a character which further tokens
 * would complete is not shown. Calls on the session from here: see the rules above. */
typedef int (*oriel_token_fn)(const oriel_token_event *event, void *user);

typedef enum oriel_stop_reason {
  ORIEL_STOP_LENGTH = 0, /* max_tokens */
  ORIEL_STOP_TOKEN = 1,  /* end of text or end of turn */
  ORIEL_STOP_CALLBACK = 2,
  ORIEL_STOP_CANCELLED = 3,
  ORIEL_STOP_TEXT = 4 /* one of the stop texts */
} oriel_stop_reason;

typedef struct oriel_generation {
  size_t struct_size;
  oriel_stop_reason stop_reason;
  uint32_t tokens;        /* generated, a stop token not counted */
  uint32_t prompt_tokens; /* appended by oriel_chat_reply and pending oriel_chat_add calls */
  double time_to_first_token_ms;
  double decode_tokens_per_s; /* of the tokens after the first; 0 with fewer than two */
  uint32_t tokens_drafted;    /* guesses that were verified (oriel_options.draft_tokens), ... */
  uint32_t tokens_accepted;   /* ... and those that were right */
  /* Of prompt_tokens, those that the reply does not see: a message is longer than the window, or several together are.
   * A message that is longer than the window is a warning in the log, too. */
  uint32_t prompt_tokens_evicted;
  uint32_t reserved;
} oriel_generation;

/* Appends one message in the session's chat format. Text is never read as control tokens. Roles are those
 * that the format has; where it has no system role, the text goes in front of the first user's, as the
 * template does it. What is in the cache stays as it was written: formats that rewrite earlier messages
 * when a new one comes (dropping what was thought, moving the system text) do that in oriel_render only. */
ORIEL_API oriel_status oriel_chat_add(oriel_session *session, const char *role, const char *text, size_t bytes);
/* The same of a message, or a list of them, as JSON in the OpenAI form: {"role", "content"} with "content" a text, null
 * or a list of parts, and "tool_calls", "tool_call_id", "name", "reasoning_content" where the template knows them.
 * What a template cannot take is ORIEL_ERROR_ARGUMENT, with its own words; messages before that one stay. */
ORIEL_API oriel_status oriel_chat_add_json(oriel_session *session, const char *json, size_t bytes);
/* Opens the assistant's turn and generates until it ends. What closes the turn is written with the next
 * oriel_chat_add; an app that goes on with oriel_session_append closes it itself. */
ORIEL_API oriel_status oriel_chat_reply(oriel_session *session, const oriel_generate_options *options,
                                        oriel_token_fn on_token, void *user, oriel_generation *result);

/* ---- Embeddings ------------------------------------------------------------------------------ */

typedef enum oriel_pooling {
  ORIEL_POOLING_AUTO = 0, /* as the file says; the mean where it says nothing */
  ORIEL_POOLING_MEAN = 1, /* of all tokens */
  ORIEL_POOLING_LAST = 2, /* the last token's */
  ORIEL_POOLING_FIRST = 3
} oriel_pooling;

typedef struct oriel_embed_options {
  size_t struct_size;
  oriel_pooling pooling;
  uint32_t not_normalised; /* 0: the vector has length 1 */
} oriel_embed_options;

/* The vector of a text: n_embd values, what the model's last norm gives. The session must be empty
 * (ORIEL_ERROR_STATE), and is again afterwards. The text is tokenised as the model wants texts to begin and end;
 * ORIEL_ERROR_CONTEXT where it is longer than sinks and window. *tokens (may be NULL): how many it had. */
ORIEL_API oriel_status oriel_embed(oriel_session *session, const oriel_embed_options *options, const char *text,
                                   size_t bytes, float *values, size_t capacity, size_t *needed, uint32_t *tokens);

/* ---- Session, token by token ----------------------------------------------------------------- */

#define ORIEL_TEXT_SPECIAL 1u /* control tokens written in the text become their ids */
#define ORIEL_TEXT_BOS 2u     /* put BOS first if the model asks for one */

/* Appends tokens (prefill in chunks). Logits of the last one are then available. */
ORIEL_API oriel_status oriel_session_append(oriel_session *session, const int32_t *ids, size_t count);
/* Tokenises and appends, some tokens at a time. Refuses text that is not UTF-8 with ORIEL_ERROR_TEXT, and a word
 * that there is no memory for with ORIEL_ERROR_OUT_OF_MEMORY, before the first token. */
ORIEL_API oriel_status oriel_session_append_text(oriel_session *session, const char *text, size_t bytes,
                                                 uint32_t flags);

/* Generates from the current context. Needs logits (oriel_session_logits). A cancelled generation
 * returns ORIEL_ERROR_CANCELLED with `result` filled. */
ORIEL_API oriel_status oriel_session_generate(oriel_session *session, const oriel_generate_options *options,
                                              oriel_token_fn on_token, void *user, oriel_generation *result);

/* n_vocab logits after the last committed token; valid until the next call on the session, oriel_trim and oriel_resume
 * included. ORIEL_ERROR_STATE where there are none: in an empty session, after a rewind, or after appending or evaluating
 * ended in between. */
ORIEL_API oriel_status oriel_session_logits(oriel_session *session, const float **logits, size_t *count);

/* Called with the logits (n_vocab) after each of the appended tokens, `index` counting from 0.
 * Return non-zero to stop; the tokens of the current chunk are then committed, and there are logits to
 * continue from only if the last of them was shown. Calls on the session from here: see the rules above. */
typedef int (*oriel_logits_fn)(size_t index, const float *logits, size_t n_vocab, void *user);
/* As oriel_session_append, showing the logits of every position. */
ORIEL_API oriel_status oriel_session_evaluate(oriel_session *session, const int32_t *ids, size_t count,
                                              oriel_logits_fn on_logits, void *user);

/* Forgets all tokens from `position` on (oriel_stats.position counts them; the repeat penalty still
 * remembers them), and the logits: append before generating. Inside or right behind the latest reply that
 * reply counts as open again; behind an older one the app writes what closes it, unless a template of its own does
 * (oriel_chat_options), which then closes whatever message is open. Going back is possible while
 * what the remaining text would see is still stored: always before the window has filled (with sliding-window
 * layers theirs: oriel_plan.groups), later for up to chunk_tokens, one less
 * right behind a greedy reply that a stop token or a cancel ended (with oriel_plan.draft_tokens up to so many less, behind
 * any reply in which guesses were allowed); beyond that ORIEL_ERROR_CONTEXT, and nothing changes.
 *
 * In a model that keeps a state this is at once where there is a checkpoint after `position` tokens
 * (oriel_session_get_checkpoints), and where the latest step began. Else the tokens behind the nearest earlier
 * checkpoint are read again, if what they see is still stored and their ids are held (oriel_session_get_tokens): in the
 * batches that appending them all would be cut into, so that the session is to the bit one that went back to the
 * checkpoint and had these tokens appended. Checkpoints are made where a message of oriel_chat_add and a reply begin, and
 * every 256 tokens of a longer text. Where there is none to begin from, everything is read again, if all is held.
 * Reading again can be cancelled and can fail: the session then ends behind the tokens it got to
 * (oriel_stats.position), or is as it was where nothing had begun. */
ORIEL_API oriel_status oriel_session_rewind(oriel_session *session, uint64_t position);

/* Brings back what `text` asks for of the turns that left the window, as oriel_chat_add does for each user's message: the
 * turns with the most, and the rarest, words in common stand behind the sinks from here on, as far as there is room. Where
 * none has any, what stands there stays. For apps that write turns themselves. ORIEL_ERROR_STATE in a model that was
 * loaded without recall_bytes. A file that cannot be read or written is a warning, and nothing comes back any more. */
ORIEL_API oriel_status oriel_session_recall(oriel_session *session, const char *text, size_t bytes);
/* The ids of the tokens that stand there, in the order in which they were said. *needed is their count. */
ORIEL_API oriel_status oriel_session_get_recalled(const oriel_session *session, int32_t *ids, size_t capacity,
                                                  size_t *needed);

/* ---- What a session holds -------------------------------------------------------------------- */

typedef struct oriel_stats {
  size_t struct_size;
  uint64_t position;        /* tokens committed so far */
  uint32_t window_used;     /* tokens the latest query saw: sinks and window, and what came back */
  uint32_t window_capacity; /* sinks + window, and slots for what comes back */
  uint64_t evicted;         /* tokens that no query will see again */
  uint64_t device_bytes;    /* really allocated: weights + cache + activations + staging */
  uint64_t host_bytes;      /* really allocated by Oriel on the host */
  uint64_t submissions;     /* steps that the device carried out since the session was made */
  /* Of weights on file, since the model was loaded: experts that the tokens of a step chose, each counted once a
   * layer, and were in a slot; and those that were read. */
  uint64_t expert_hits;
  uint64_t expert_misses;
  /* Since the session was made: rows that tokens needed, and rows that were read for them. */
  uint64_t rows_wanted;
  uint64_t rows_read;
  uint64_t tokens_read_again; /* since the session was made, to go back and to forget (models that keep a state) */
  uint64_t tokens_drafted;    /* since the session was made, as in oriel_generation */
  uint64_t tokens_accepted;
  uint64_t tokens_kept;     /* in the file of turns that may come back; those that are seen are among them */
  uint32_t tokens_recalled; /* that came back and are seen: of window_used */
  uint32_t reserved_recall;
} oriel_stats;

ORIEL_API oriel_status oriel_session_get_stats(const oriel_session *session, oriel_stats *stats);

/* Which tokens layers see, and what they remember of them. */
typedef enum oriel_layer_kind {
  ORIEL_LAYERS_SESSION = 0,     /* keys and values of the session's sinks and window */
  ORIEL_LAYERS_SLIDING = 1,     /* keys and values of the last window_tokens tokens, and no sinks */
  ORIEL_LAYERS_CONVOLUTION = 2, /* a column of each of the last window_tokens tokens, whatever was evicted */
  ORIEL_LAYERS_STATE = 3        /* a state that follows from all tokens */
} oriel_layer_kind;

/* Layers that see the same tokens. */
typedef struct oriel_layer_group {
  oriel_layer_kind kind;
  uint32_t layers;          /* of the model; 0 is possible for the first group only */
  uint32_t window_tokens;   /* that they see at most; of the first group oriel_plan.window_tokens; 0: a state */
  uint32_t ring_tokens;     /* slots behind the sinks, chunk slack included; of a state its versions */
  uint64_t bytes_per_token; /* of keys, values or columns of one token, or of one version of the state */
  uint64_t bytes;           /* of window_tokens tokens, or all versions; no sinks, chunk slack or alignment */
} oriel_layer_group;
#define ORIEL_LAYER_GROUPS 8

/* What of the conversation is where, to draw it. Tokens are counted as in oriel_stats.position. */
typedef struct oriel_view {
  size_t struct_size;
  uint64_t position;      /* tokens committed so far */
  uint64_t first_visible; /* first token behind the sinks that the newest one saw; sinks_used when
                           * it has seen everything */
  uint64_t first_stored;  /* first token behind the sinks whose slot is not overwritten yet */
  uint32_t sinks_used;    /* the tokens below this number stay for ever */
  uint32_t turn_count;    /* turns whose start is known; oriel_session_get_turns */
  /* As first_visible, in the layers of oriel_plan.groups[i]; position in those that see no tokens. */
  uint64_t group_first_visible[ORIEL_LAYER_GROUPS];
} oriel_view;

ORIEL_API oriel_status oriel_session_get_view(const oriel_session *session, oriel_view *view);
/* The first token of each user's turn, the latest 256 of them, ascending; those already evicted, too. */
ORIEL_API oriel_status oriel_session_get_turns(const oriel_session *session, uint64_t *starts, size_t capacity,
                                               size_t *needed);

/* The numbers of tokens, ascending, whose state is kept: where oriel_session_rewind leads without reading anything
 * again, as long as the window has not left them behind. None in models that keep no state. */
ORIEL_API oriel_status oriel_session_get_checkpoints(const oriel_session *session, uint64_t *positions,
                                                     size_t capacity, size_t *needed);

/* The ids of the tokens from number `first` on that the session's memory holds, as far as they follow each other:
 * from below oriel_view.sinks_used up to that number (or to oriel_stats.position if nothing behind it is gone), from
 * oriel_view.first_stored or later up to oriel_stats.position. *needed is their count. ORIEL_ERROR_CONTEXT for a
 * token that is not held. Works on a device that was lost, too: what it takes to build the conversation again in
 * another session. An id of oriel_session_options.assumed_tokens is -1. */
ORIEL_API oriel_status oriel_session_get_tokens(const oriel_session *session, uint64_t first, int32_t *ids,
                                                size_t capacity, size_t *needed);

/* ---- Snapshots ------------------------------------------------------------------------------- */

/* A session as bytes: used cache slots, the ids of their tokens, position, sampler, turns, transcript. Restored into
 * one of the same model file, window, sinks (which grow with pinned_tokens), chunk, cache formats, chat format and
 * split_turns (on any device), it goes on to the bit as this one would on that device. Of the same model file and chat
 * format, what fits is carried over (oriel_session_restore_as says how much); anything else is refused with
 * ORIEL_ERROR_FORMAT, and the session stays as it was. "The same model file": a hash of everything before the tensors'
 * data and of all weights (of those that may stay on file every 1,024th row) is the same. That and the checksum of the
 * bytes find accidents, not forgery, for neither has a key: who can write a snapshot can make the session remember what
 * he likes, and nothing worse. An app that has that to fear must authenticate the bytes. A recurrent state is saved as
 * it is after the last token. Checkpoints are not saved: they would make the file several times as large for what
 * reading again gives as well. */
ORIEL_API oriel_status oriel_session_save(oriel_session *session, void *data, size_t capacity, size_t *needed);
ORIEL_API oriel_status oriel_session_restore(oriel_session *session, const void *data, size_t bytes);
/* The same with a file. It is written beside `path` under a name that nobody else has, and is on the disk before it
 * is renamed over what is there: a process that is ended or a power failure leaves the old snapshot or the new
 * one, and what such a process left is removed by the next saving to this path. Never waits for another process.
 *  - A file that is there is replaced if it is a snapshot of whatever model and version, or empty. Any other is
 *    ORIEL_ERROR_IO and stays: an app that was told to write over it removes it first. So are folders, devices and
 *    pipes. Links are followed (not on Windows).
 *  - The folder must be there: none is made.
 *  - The file is its owner's alone (mode 0600 on POSIX systems, elsewhere as the folder has it); one that is
 *    replaced passes on what its own mode forbids.
 *  - Both calls borrow memory of the snapshot's size. A file that is changed while it is restored is
 *    ORIEL_ERROR_IO or ORIEL_ERROR_FORMAT. */
ORIEL_API oriel_status oriel_session_save_file(oriel_session *session, const char *path);
ORIEL_API oriel_status oriel_session_restore_file(oriel_session *session, const char *path);

/* ---- Plan ------------------------------------------------------------------------------------ */

typedef enum oriel_refusal {
  ORIEL_REFUSED_NOT = 0,
  ORIEL_REFUSED_QUALITY = 1, /* quantisation error beyond kl_limit */
  ORIEL_REFUSED_SPEED = 2    /* slower than min_tokens_per_s with the shortest window */
} oriel_refusal;

/* One pair of formats that was weighed, with the largest window that fits with it. */
typedef struct oriel_plan_choice {
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  uint32_t fits;
  uint32_t window_tokens;          /* of the layers that see most */
  uint32_t shortest_window_tokens; /* of those that see least of it: a calibration shares the window out */
  uint32_t chunk_tokens;
  oriel_refusal refused; /* why it is not chosen even where it fits */
  uint64_t total_bytes;
  uint64_t minimum_bytes;
  double loss_nats;
  double decode_tokens_per_s; /* predicted, with the window full; 0: not known */
} oriel_plan_choice;

/* What a step of `tokens` tokens is predicted to take, in seconds. */
typedef struct oriel_step_cost {
  uint32_t tokens;       /* 0: not known */
  uint32_t group_count;  /* of groups */
  double overhead_s;     /* submission, kernels; of one token also storing its key and value */
  double weights_s;      /* matrices of the layers (of a chunk also storing its keys and values), ... */
  double weights_once_s; /* ... of which however few tokens a chunk has */
  double head_s;         /* logits of one token, behind a chunk with the layers that it leaves out: only steps that
                          * want them */
  struct {
    uint32_t window_tokens; /* that these layers see at most; 0: as many as the session */
    uint32_t reserved;
    double s_per_token;         /* for each token that they see */
  } groups[ORIEL_LAYER_GROUPS]; /* as oriel_plan.groups */
} oriel_step_cost;

typedef struct oriel_plan {
  size_t struct_size;
  uint32_t fits;             /* 0: everything below describes the smallest plan instead. 0, too, where
                             * weights_unknown is 1 */
  uint64_t memory_bytes;     /* the cap that was planned for */
  uint64_t total_bytes;      /* = the five below */
  uint64_t weights_bytes;    /* device: weights as repacked for the kernels */
  uint64_t kv_bytes;         /* device: the cache of one session, states included */
  uint64_t activation_bytes; /* device: vectors between kernels, for one chunk */
  uint64_t staging_bytes;    /* host-visible: upload ring, step parameters, logits */
  uint64_t host_bytes;    /* tokenizer, tables, sampler, the tokens' ids (4 bytes a slot), the objects themselves */
  uint64_t minimum_bytes; /* least memory_bytes that these options can run in; 0: weights_unknown */
  uint64_t kv_bytes_per_token; /* growth of kv_bytes for one more token of window */
  uint32_t window_tokens;
  uint32_t sink_tokens;
  uint32_t ring_tokens; /* window_tokens + chunk_tokens - 1 slots */
  uint32_t chunk_tokens;
  uint32_t context_train_tokens; /* 0: the file does not say */
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  uint64_t weights_read_bytes_per_token; /* what one decoded token reads of the weights */
  uint64_t crossover_tokens;             /* depth at which reading the cache costs as much as the weights */
  double loss_nats;                      /* expected, per token, against an endless f16 cache; may be below 0 */
  uint32_t raised_layers;                /* layers that a guard gives more bits: extreme key biases, wide key norms */
  uint32_t choice_count;                 /* of choices */
  oriel_plan_choice choices[4];          /* what was weighed, cheapest format first, the chosen one included */
  uint32_t calibrated; /* 1: loss_nats follows a calibration (given, or of a file); 0: published priors */
  /* 1: only from oriel_plan_shape, whose shape does not describe the weights. Whether the model fits is not known:
   * fits, weights_bytes, minimum_bytes and those of the choices are 0. Everything else is planned as if all of
   * memory_bytes were for it (total_bytes > memory_bytes: even that does not fit). */
  uint32_t weights_unknown;
  /* Keys and values alone, as published figures count them: no sinks, chunk slack or alignment. */
  uint64_t kv_window_bytes;                     /* of window_tokens tokens */
  uint32_t group_count;                         /* of groups */
  oriel_layer_group groups[ORIEL_LAYER_GROUPS]; /* the session's window first */
  /* Which layers a guard raised and why, layer i in bit i % 64 of word i / 64. */
  uint64_t raised_by_bias[8];
  uint64_t raised_by_norm[8];
  uint8_t window_shares[512]; /* of each layer, as oriel_options.window_shares; 0 with a window of its own, too */
  uint64_t head_read_bytes;   /* of weights_read_bytes_per_token, what only logits need */
  oriel_step_cost decode;     /* one token; unknown without oriel_options.speed */
  oriel_step_cost prefill;    /* chunk_tokens tokens */
  uint64_t on_file_bytes;     /* of weights that stay in the model's file; not part of total_bytes */
  uint32_t expert_slots;      /* experts that each layer has room for; 0: all are held, or there are none */
  uint32_t expert_count;      /* that a layer has; 0: none */
  /* Share of the experts that tokens choose which is expected to be in a slot, as if all were chosen alike; 1: all are
   * held; 0: there are none. */
  double expert_hit_rate;
  double file_s; /* of decode.weights_s, what reading experts and rows takes; 0: nothing, or not known */
  /* Of kv_bytes, what layers keep as states: state_slots versions of all of them, two and the checkpoints. 0: none. */
  uint64_t state_bytes;
  uint32_t state_slots;
  uint32_t checkpoints;
  oriel_state_format state_format; /* ORIEL_STATE_AUTO: no layer has a state */
  uint64_t constraint_bytes;       /* of host_bytes, what oriel_options.constraints takes; 0: not asked for */
  uint32_t sessions;               /* that all bytes above are for */
  uint32_t prefix_tokens;          /* of sink_tokens, held once for all sessions; 0: each has its own sinks */
  uint64_t prefix_bytes;           /* of kv_bytes, what the prefix takes */
  uint64_t session_bytes;          /* of total_bytes, what the last session adds to those before it */
  uint64_t transcript_bytes;       /* of host_bytes, all sessions' */
  uint32_t session_windows[64];    /* of each session; those behind `sessions` are 0 */
  /* What stays of total_bytes after oriel_trim to each oriel_trim_level. */
  uint64_t trim_bytes[5];
  uint64_t draft_bytes;  /* of total_bytes, what oriel_options.draft_tokens takes, without a draft model's weights */
  uint32_t draft_tokens; /* guesses that a step verifies at most; 0: none, or this model or plan does without */
  uint32_t activation_bits;     /* that the CPU rounds activations to: 16 or 8 */
  uint64_t draft_weights_bytes; /* of weights_bytes, those of oriel_options.draft_model: what a guess of it reads */
  uint32_t recall_tokens;       /* slots for turns that come back; 0: none, or this model does without */
  uint32_t reserved_recall;
  uint64_t recall_memory_bytes; /* of total_bytes, what these and the index take, in all sessions */
  uint64_t recall_file_bytes;   /* most bytes of a session's file, ... */
  uint64_t recall_file_tokens;  /* ... which keeps so many of its latest tokens */
} oriel_plan;

/* Plans for a file without touching a device: reads the header, and the calibration beside the file if there
 * is one. Returns ORIEL_OK also when nothing fits (plan->fits tells). oriel_model_load with the same options
 * carries out this plan. With memory_bytes 0 both plan for half of the memory that is free at that moment:
 * give plan->memory_bytes to the load that is to be the same. */
ORIEL_API oriel_status oriel_plan_file(const char *path, const oriel_options *options, oriel_plan *plan);

/* The plan that was carried out. ORIEL_ERROR_STATE for a model loaded with ORIEL_DEVICE_NONE. */
ORIEL_API oriel_status oriel_model_get_plan(const oriel_model *model, oriel_plan *plan);

/* ORIEL_KV_AUTO: the layer has no keys and values. */
typedef struct oriel_layer_formats {
  oriel_kv_format k;
  oriel_kv_format v;
} oriel_layer_formats;

/* How the cache of each layer is stored; guards keep the keys of some layers in more bits. ORIEL_ERROR_STATE
 * for a model loaded with ORIEL_DEVICE_NONE. */
ORIEL_API oriel_status oriel_model_get_layer_formats(const oriel_model *model, oriel_layer_formats *layers,
                                                     size_t capacity, size_t *needed);

/* ---- What a model is ------------------------------------------------------------------------- */

typedef struct oriel_model_info {
  size_t struct_size;
  char architecture[64];
  char name[128];
  char tokenizer[64];     /* "bpe (smollm)", "spm" */
  char chat_template[64]; /* "chatml"; "plain" for one that is not known; "none" */
  char tensor_types[256]; /* "Q8_0 x 43, F32 x 13" */
  char device[256];       /* what it runs on; "none" for ORIEL_DEVICE_NONE */
  char driver[256];
  uint32_t n_layers, n_heads, n_kv_heads, head_dim, n_embd, n_ff, n_vocab;
  uint32_t context_train; /* tokens */
  uint64_t parameters;
  uint64_t file_bytes;
  int32_t bos_id, eos_id;                       /* -1: none */
  uint32_t add_bos;                             /* the file asks for a BOS before raw text */
  char rope_scaling[16];                        /* "none", "linear", "llama3", "yarn", "longrope" */
  uint32_t group_count;                         /* of groups */
  oriel_layer_group groups[ORIEL_LAYER_GROUPS]; /* kinds, layers and windows; the rest is 0 */
  uint32_t window_train; /* tokens that every layer was trained to see at most; 0: as context_train */
  /* Kernels compiled for the device, those among them that the driver says it found in cache_dir, and the
   * milliseconds until all were ready. On the CPU there are none. */
  uint32_t pipelines;
  uint32_t pipelines_from_cache; /* UINT32_MAX: the driver does not say */
  double pipelines_ms;
  /* What is known or was found against the device in use, and is left off; "": nothing. */
  char device_trust[512];
} oriel_model_info;

ORIEL_API oriel_status oriel_model_get_info(const oriel_model *model, oriel_model_info *info);

typedef struct oriel_tensor_type {
  char name[16]; /* "Q4_K" */
  uint32_t tensors;
  uint32_t reserved;
  uint64_t parameters;
  uint64_t bytes;
} oriel_tensor_type;

/* Numbers and texts that the file does not give are 0 and empty. */
typedef struct oriel_file_info {
  size_t struct_size;
  char architecture[64];
  char name[128];
  char size_label[32]; /* "135M" */
  char license[64];
  char tokenizer[64];     /* "bpe (smollm)", "spm"; as in the file for one that is not known here */
  char chat_template[64]; /* as in oriel_model_info */
  uint32_t n_layers, n_heads, n_kv_heads, head_dim, n_embd, n_ff, n_vocab, n_experts;
  uint32_t context_train;
  uint32_t tensor_count;
  uint64_t parameters;
  uint64_t file_bytes;
  int32_t bos_id, eos_id; /* -1: none */
  uint32_t add_bos;
  uint32_t tensor_type_count;
  oriel_tensor_type tensor_types[24]; /* in the order in which they first appear */
  uint32_t runs;                      /* this build can run it, given the memory */
  uint32_t missing_count;             /* why not, each as "WHAT IS MISSING: WHAT TO DO" */
  char missing[4][512];
  /* As in oriel_model_info; empty and 0 for an architecture that this build does not know. */
  char rope_scaling[16];
  uint32_t group_count;
  oriel_layer_group groups[ORIEL_LAYER_GROUPS];
  uint32_t window_train;
} oriel_file_info;

/* Also for files that this build cannot run; fails only for what is no sound GGUF file. Touches no device;
 * borrows memory for the tokenizer. Of the options, log and allocator count. */
ORIEL_API oriel_status oriel_inspect(const char *path, const oriel_options *options, oriel_file_info *info);

/* ---- Text ------------------------------------------------------------------------------------ */

/* Any bytes are accepted; ones that are not UTF-8 become byte tokens. */
ORIEL_API oriel_status oriel_tokenize(const oriel_model *model, const char *text, size_t bytes, uint32_t flags,
                                      int32_t *ids, size_t capacity, size_t *needed);
/* The bytes of `count` ids; with ORIEL_TEXT_SPECIAL control tokens are written out, too. */
ORIEL_API oriel_status oriel_detokenize(const oriel_model *model, const int32_t *ids, size_t count, uint32_t flags,
                                        char *text, size_t capacity, size_t *needed);

typedef struct oriel_message {
  const char *role; /* "system", "user", "assistant"; ends in NUL */
  const char *text;
  size_t text_bytes;
} oriel_message;

/* The name of the format that these options mean: "none" for a model without one, "plain" for a template
 * that is not known, NULL for options that are wrong. A constant; never to be freed. */
ORIEL_API const char *oriel_chat_template(const oriel_model *model, const oriel_chat_options *options);

/* The text a conversation becomes when its template renders all of it. Without messages: what stands
 * before the first. */
ORIEL_API oriel_status oriel_render(const oriel_model *model, const oriel_chat_options *options,
                                    const oriel_message *messages, size_t count, int add_generation_prompt,
                                    char *text, size_t capacity, size_t *needed);
/* Its ids: control tokens of the template are recognised, those inside messages are not. With
 * ORIEL_TEXT_BOS those that a new session appends for it; else those of the text. Borrows working
 * memory. */
ORIEL_API oriel_status oriel_render_tokens(const oriel_model *model, const oriel_chat_options *options,
                                           const oriel_message *messages, size_t count, int add_generation_prompt,
                                           uint32_t flags, int32_t *ids, size_t capacity, size_t *needed);

/* The same of messages as JSON, as oriel_chat_add_json has them. */
ORIEL_API oriel_status oriel_render_json(const oriel_model *model, const oriel_chat_options *options,
                                         const char *json, size_t bytes, int add_generation_prompt, char *text,
                                         size_t capacity, size_t *needed);
ORIEL_API oriel_status oriel_render_json_tokens(const oriel_model *model, const oriel_chat_options *options,
                                                const char *json, size_t bytes, int add_generation_prompt,
                                                uint32_t flags, int32_t *ids, size_t capacity, size_t *needed);

/* What the whole text of a reply means, as oriel_chat_reply tells it: `on_part` is called for each part. Control tokens
 * are written out in it (ORIEL_TEXT_SPECIAL). `options` are those of the conversation: their template says in which
 * form calls come, their tools which arguments are texts. `inside_thought`, non-zero: the template has opened a
 * thought, in which the reply begins; zero: it began in one only if it closes one that it has not opened.
 * ORIEL_ERROR_TEXT for text that is not UTF-8. Borrows working memory. */
ORIEL_API oriel_status oriel_parse_reply(const oriel_model *model, const oriel_chat_options *options,
                                         int inside_thought, const char *text, size_t bytes, oriel_part_fn on_part,
                                         void *user);

/* ---- Devices --------------------------------------------------------------------------------- */

typedef struct oriel_device_info {
  size_t struct_size;
  char name[256];
  char driver[256];   /* driver name and version as the driver words it */
  char kind[16];      /* "discrete", "integrated", "virtual", "software", "other", "cpu" */
  char features[256]; /* optional features that kernels here can use, comma-separated */
  char reason[256];   /* why it is not usable; empty when it is */
  uint32_t usable;
  uint64_t memory_bytes; /* size of its largest device-local heap; 0: unknown */
  char faults[320];      /* what it is known for and used without, why, and who says so; "": nothing */
  char verdict[256];     /* what was found against it on this machine (cache_dir), and is left off; "": nothing */
  uint32_t kernels_right, kernels_wrong; /* of those that were tested on this machine */
} oriel_device_info;

/* Fills up to `capacity` entries (each with struct_size set by the caller), Vulkan devices first in
 * the driver's order (their index is what device_number counts), the CPU last. What is wrong with a Vulkan that
 * does not work is a warning of the log's. */
ORIEL_API oriel_status oriel_device_list(oriel_log_fn log, void *log_user, oriel_device_info *devices,
                                         size_t capacity, size_t *needed);

/* The same with what was found out about each. Uses cache_dir, device_test, disabled_features, enabled_features and log
 * of the options. */
ORIEL_API oriel_status oriel_device_list_with(const oriel_options *options, oriel_device_info *devices,
                                              size_t capacity, size_t *needed);

/* Forgets what cache_dir (which must be given) says against devices and their drivers: kernels that were wrong or right,
 * and where a driver ended a process. For apps that know better: that it was the user who ended them, or after whatever
 * else was wrong was put right. ORIEL_ERROR_IO: some of its files cannot be removed. */
ORIEL_API oriel_status oriel_device_forget(const oriel_options *options);

#ifdef __cplusplus
}
#endif

#endif /* ORIEL_ORIEL_H_ */
