/*
 * Oriel: several conversations on one model, and memory given back for a while.
 *
 *   oriel_options options = {.struct_size = sizeof(options), .memory_bytes = 600u << 20, .sessions = 4,
 *                            .system_prompt = text, .system_prompt_bytes = bytes};
 *   oriel_model *model;     oriel_model_load("model.gguf", &options, &model);
 *   oriel_session *a, *b;   oriel_session_create(model, NULL, &a); oriel_session_create(model, NULL, &b);
 *
 * The rules of oriel.h hold. Sessions of one model may be used at the same time, each from one thread at a time. They
 * take turns on the device, a step each; tokens that several wait for are computed in one step, with the same result to
 * the bit as alone.
 */
#ifndef ORIEL_SESSIONS_H_
#define ORIEL_SESSIONS_H_

#include "oriel/oriel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Shared prefix --------------------------------------------------------------------------- */

/* A prefix is text that was processed once and is held once, in f16, in place of the sinks: every session sees it before
 * its own tokens, at the same positions and in the same turns as if the text had been its own. It is never evicted. */

/* Makes what the session holds the model's prefix: this session and all that are created from now on begin behind it,
 * after oriel_session_reset, too. Replaces an earlier one.
 *  - The model was loaded with prefix_tokens, and this is its only session (ORIEL_ERROR_STATE).
 *  - The session holds from 1 to prefix_tokens tokens (ORIEL_ERROR_CONTEXT).
 * Sessions that are created later have the same chat options, but for the date, which the prefix has told; others are
 * ORIEL_ERROR_ARGUMENT. So are assumed_tokens that end within the prefix. */
ORIEL_API oriel_status oriel_prefix_set(oriel_session *session);
/* Overwrites it with zeros. The model has no session (ORIEL_ERROR_STATE), and none can be created meanwhile. On a device
 * that is lost it stays, and is recovered with the first session. */
ORIEL_API oriel_status oriel_prefix_clear(oriel_model *model);

typedef struct oriel_prefix_info {
  size_t struct_size;
  uint32_t tokens;   /* 0: none was set */
  uint32_t capacity; /* oriel_plan.prefix_tokens */
  uint64_t bytes;    /* oriel_plan.prefix_bytes */
  uint32_t trained;  /* 1: of a file with keys and values that no text has */
  uint32_t reserved;
} oriel_prefix_info;
ORIEL_API oriel_status oriel_prefix_get_info(const oriel_model *model, oriel_prefix_info *info);

/* ---- Fork, and going back -------------------------------------------------------------------- */

/* A second session that goes on from where this one is, to the bit; both have the same options, the progress callback and
 * the texts that they point to included: those stay until both are destroyed. Takes one of the model's sessions with the
 * same window. A prefix is shared, the rest is copied. ORIEL_ERROR_STATE: none is free, or the model has room for a prefix
 * and none yet. */
ORIEL_API oriel_status oriel_session_fork(oriel_session *session, oriel_session **fork);

/* Names the place where the session is, to come back to. 1 to 31 bytes of UTF-8 (ORIEL_ERROR_ARGUMENT). A session has
 * 16 marks (ORIEL_ERROR_CONTEXT); a name that is there moves. Costs no memory; in models that keep a state the place
 * gets a checkpoint, where there is one to have. Marks behind a place that the session goes back to are gone. */
ORIEL_API oriel_status oriel_session_mark(oriel_session *session, const char *name);
typedef struct oriel_mark {
  char name[32];
  uint64_t position;
} oriel_mark;
#define ORIEL_MARKS 16
/* Ascending. */
ORIEL_API oriel_status oriel_session_get_marks(const oriel_session *session, oriel_mark *marks, size_t capacity,
                                               size_t *needed);

/* Where the memory does not hold what it takes to go back, reads the conversation again from the transcript, up to
 * there (oriel_session_options.progress). Text may have other tokens than it was written in: of all marks only the one
 * that is gone to stays. Borrows a message at a time. What is refused before it begins changes nothing:
 * a message that cannot be read, memory for the longest. A cancel or a failure later:
 *  - The session stands behind the messages that were read, at its beginning at worst.
 *  - The transcript keeps the others, up to the place that was asked for. oriel_resume reads them, as long as nothing is
 *    said behind them. So does oriel_session_recover, where it was the device that was lost. */
#define ORIEL_READ_AGAIN 1u
/* As oriel_session_rewind, to a mark (ORIEL_ERROR_ARGUMENT: there is none of that name), ... */
ORIEL_API oriel_status oriel_session_return(oriel_session *session, const char *name, uint32_t flags);
/* ... or to where the `turns`-th turn before the end began, 1 being the latest (ORIEL_ERROR_CONTEXT: there are fewer). */
ORIEL_API oriel_status oriel_session_rewind_turns(oriel_session *session, uint32_t turns, uint32_t flags);

/* ---- Transcripts ----------------------------------------------------------------------------- */

typedef struct oriel_transcript_info {
  size_t struct_size;
  uint32_t messages; /* that are kept */
  uint32_t dropped;  /* that were, to make room for later ones: the oldest go first, the system message never */
  uint64_t bytes;    /* that they take */
  uint64_t capacity; /* oriel_options.transcript_bytes */
} oriel_transcript_info;
/* Works on a device that was lost, too, as the next one does. */
ORIEL_API oriel_status oriel_transcript_get_info(const oriel_session *session, oriel_transcript_info *info);
/* The messages of oriel_chat_add, oriel_chat_add_json and oriel_chat_reply, as a JSON list in the OpenAI form, ends in
 * NUL (counted). ORIEL_ERROR_STATE where none are kept. */
ORIEL_API oriel_status oriel_transcript_export(const oriel_session *session, char *json, size_t capacity,
                                               size_t *needed);
/* Reads such a list into an empty session, in whose transcript nothing waits to be read (ORIEL_ERROR_STATE): the
 * conversation is built again, reply by reply as text. Progress and cancel as for every text; what was read before a
 * failure stays. */
ORIEL_API oriel_status oriel_transcript_import(oriel_session *session, const char *json, size_t bytes);

/* ---- Snapshots that travel ------------------------------------------------------------------- */

typedef struct oriel_snapshot_info {
  size_t struct_size;
  uint32_t version;
  uint32_t readable; /* 1: by this build */
  char model[128];   /* general.name of its file */
  char architecture[64];
  uint64_t model_hash;
  uint64_t bytes;
  uint64_t position;      /* tokens of the conversation */
  uint64_t tokens_held;   /* of them, sinks included */
  uint32_t turns;         /* whose starts are known */
  uint32_t messages;      /* of its transcript; 0: it has none */
  uint32_t window_tokens; /* of the session that was saved, as in oriel_plan */
  uint32_t sink_tokens;
  uint32_t chunk_tokens;
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  char chat_template[64]; /* name of the chat format */
  int64_t saved_at;       /* seconds since 1970, UTC; 0: not known, as of one that was saved into memory */
} oriel_snapshot_info;
/* What a snapshot says of itself; needs no model. ORIEL_ERROR_FORMAT for what is none. `log` may be NULL. Of one that is
 * not readable only `version` and `bytes` are said; what lies behind the description is not looked at. */
ORIEL_API oriel_status oriel_snapshot_inspect(const void *data, size_t bytes, oriel_log_fn log, void *log_user,
                                              oriel_snapshot_info *info);
ORIEL_API oriel_status oriel_snapshot_inspect_file(const char *path, oriel_log_fn log, void *log_user,
                                                   oriel_snapshot_info *info);

typedef enum oriel_restored_how {
  ORIEL_RESTORED_EXACTLY = 0, /* to the bit: the same layout */
  ORIEL_RESTORED_CARRIED = 1, /* another window, batch or format: what fits was carried over, rounded once */
  ORIEL_RESTORED_READ = 2     /* its text was read again */
} oriel_restored_how;
typedef struct oriel_restored {
  size_t struct_size;
  oriel_restored_how how;
  uint32_t rounded;        /* 1: keys, values or states were rounded to other formats */
  uint64_t tokens_held;    /* now, sinks included */
  uint64_t tokens_dropped; /* that the snapshot held and this session does not */
  uint64_t tokens_read;    /* that were read again */
} oriel_restored;

#define ORIEL_RESTORE_EXACT 1u /* the same layout or ORIEL_ERROR_FORMAT */
/* Where nothing can be carried over its transcript is read again, with progress. One that cannot be read, or is cancelled,
 * leaves the session at its beginning, with its own transcript to be read by oriel_resume. */
#define ORIEL_RESTORE_READ 2u
/* As oriel_session_restore, which is this without flags and `result`. `result` may be NULL. */
ORIEL_API oriel_status oriel_session_restore_as(oriel_session *session, const void *data, size_t bytes,
                                                uint32_t flags, oriel_restored *result);
ORIEL_API oriel_status oriel_session_restore_file_as(oriel_session *session, const char *path, uint32_t flags,
                                                     oriel_restored *result);

#define ORIEL_SAVE_NEW 1u       /* ORIEL_ERROR_IO if there is a file of that name, a snapshot, too */
#define ORIEL_SAVE_OVERWRITE 2u /* whatever file is there */
/* As oriel_session_save_file, which is this without flags. */
ORIEL_API oriel_status oriel_session_save_file_as(oriel_session *session, const char *path, uint32_t flags);

/* ---- Replies side by side -------------------------------------------------------------------- */

typedef struct oriel_reply {
  size_t struct_size;
  oriel_session *session;                /* of one model, each once */
  const oriel_generate_options *options; /* as for oriel_chat_reply; NULL: defaults */
  oriel_token_fn on_token;
  void *user;
  oriel_generation *result; /* may be NULL */
  uint32_t generate;        /* 1: as oriel_session_generate; 0: as oriel_chat_reply */
  oriel_status status;      /* set: what that call would have returned */
} oriel_reply;
/* Several replies at once, from one thread: as long as at least two go on their tokens are computed together. Each ends as
 * it would alone, with the same text. Callbacks are called on this thread. ORIEL_OK if all statuses are, else the first
 * that is not. Entries lie replies->struct_size apart. The call returns once all have
 * ended: one that is cancelled says no more, and its status is set when the others are through. So it is while the model is
 * paused: the call rests until oriel_resume, or until all are cancelled. */
ORIEL_API oriel_status oriel_reply_many(oriel_reply *replies, size_t count);

/* ---- Memory given back ----------------------------------------------------------------------- */

/* What stays is oriel_plan.trim_bytes of the level. Each level gives back what those before it do, and: */
typedef enum oriel_trim_level {
  ORIEL_TRIM_NONE = 0,
  ORIEL_TRIM_SCRATCH = 1, /* activations, staging, compiled kernels */
  ORIEL_TRIM_WEIGHTS = 2, /* weights: read again from the model's file */
  ORIEL_TRIM_CACHE = 3,   /* the sessions' caches: written to a file in a folder, as they are */
  ORIEL_TRIM_ALL = 4      /* as CACHE without a file: conversations are built again from their transcripts */
} oriel_trim_level;

/* Gives memory back. Waits for running calls on the model's sessions, and cancels none; after oriel_pause only until they
 * rest. Until oriel_resume calls that need the device are ORIEL_ERROR_STATE; sessions may be destroyed. To a lower level
 * than the model is at: nothing happens.
 *  - `folder`: where the cache goes, under a name that nobody else has, mode 0600; removed by oriel_resume. Needed for
 *    ORIEL_TRIM_CACHE (ORIEL_ERROR_ARGUMENT), NULL else.
 *  - ORIEL_TRIM_CACHE and _ALL: ORIEL_ERROR_STATE while a reply rests.
 *  - ORIEL_TRIM_ALL: ORIEL_ERROR_STATE where a session that is not empty keeps no transcript, or holds text that is in no
 *    message, and where a prefix is set.
 *    What a transcript has dropped does not come back.
 *  - From inside a callback of a call on the model: ORIEL_ERROR_STATE.
 *  - A failure leaves the model at the level before. */
ORIEL_API oriel_status oriel_trim(oriel_model *model, oriel_trim_level level, const char *folder);
/* Takes everything again, and ends a pause; sessions go on as if nothing had been. Weights are read by the path that was
 * loaded, and checked to be those (ORIEL_ERROR_IO). `progress`: of weights; stops with ORIEL_ERROR_CANCELLED. On failure,
 * ORIEL_ERROR_OUT_OF_MEMORY for one, the model stays trimmed, and the call may be repeated. But for conversations that are
 * read again from transcripts: one that fails or is cancelled ends where it got to, at its beginning at worst, and the
 * model is there. Its transcript keeps what was not read: the next oriel_resume reads it, as long as nothing is said
 * behind it. ORIEL_ERROR_STATE, and the same, for a session whose call on another thread does not return soon. */
ORIEL_API oriel_status oriel_resume(oriel_model *model, oriel_progress_fn progress, void *user);
/* Waits until the device is idle and keeps it so, for apps that go to the background: running calls stop between two
 * tokens, or two batches of them, and rest until oriel_resume; oriel_session_cancel ends that with ORIEL_ERROR_CANCELLED,
 * but for one that has to take back on the device what it did: that ends behind oriel_resume. New ones are
 * ORIEL_ERROR_STATE. All memory stays. A callback that waits for the thread which pauses is waited for in vain. */
ORIEL_API oriel_status oriel_pause(oriel_model *model);

typedef struct oriel_resident {
  size_t struct_size;
  oriel_trim_level level;
  uint32_t paused;
  uint64_t weights_bytes; /* as in oriel_plan, what is allocated now */
  uint64_t kv_bytes;
  uint64_t activation_bytes;
  uint64_t staging_bytes;
  uint64_t host_bytes;
  uint64_t total_bytes;
} oriel_resident;
ORIEL_API oriel_status oriel_model_get_resident(const oriel_model *model, oriel_resident *resident);

/* ---- A device that was lost ------------------------------------------------------------------ */

typedef struct oriel_recover_options {
  size_t struct_size;
  /* ORIEL_DEVICE_AUTO: the device that was lost, then any other that Vulkan has, then the CPU: the first that works. One
   * that never ended what it was doing is passed over. ORIEL_DEVICE_VULKAN, ORIEL_DEVICE_CPU: as in oriel_options, or an
   * error. ORIEL_DEVICE_NONE: ORIEL_ERROR_ARGUMENT. */
  oriel_device_kind device;
  uint32_t device_number; /* with ORIEL_DEVICE_VULKAN, as in oriel_options; 0: as AUTO, without the CPU */
  /* Non-zero: what was said is read in prefill batches. That is faster, but rounds differently than the steps in which
   * it was read and written at first, which are what is taken otherwise. */
  uint32_t in_batches;
  uint32_t reserved;
  oriel_progress_fn progress; /* of weights, as for oriel_resume; begins anew with each device that is tried */
  void *progress_user;
} oriel_recover_options;

typedef struct oriel_recovered {
  size_t struct_size;
  oriel_device_kind device; /* that the model is on now: ORIEL_DEVICE_VULKAN or ORIEL_DEVICE_CPU */
  uint32_t same_device;     /* 1: it has the name and the driver of the one before */
  char device_name[256];
  uint64_t tokens_held;    /* of the conversation, sinks and prefix included */
  uint64_t tokens_read;    /* for that, by this call */
  uint64_t tokens_dropped; /* behind the sinks, that nobody knows any more: what is held does not follow from them */
  /* 1: from the ids of all tokens, each in the step in which it was read or written at first. On the same device and
   * driver that is to the bit what was lost. 0: in_batches; or the window had moved on; or some of it came from a
   * snapshot, which does not say in which steps it was read. */
  uint32_t exact;
  uint32_t reserved;
} oriel_recovered;

/* After ORIEL_ERROR_DEVICE and ORIEL_ERROR_TIMEOUT: the session is used again as if nothing had been. What the model has on
 * the device is made anew, on the same device or another, with weights from the model's file; the plan is the same on
 * all devices. Then the conversation is read again. It has the place, turns, marks, checkpoints and transcript that it
 * had, and logits of its last token.
 *  - All that is held of it and follows from itself is read by the ids of its tokens. Where the window has moved on, the
 *    transcript is read from its beginning, through the window as it was then. Without one, or where it lacks messages or
 *    text that came in other ways: the tokens that are held (tokens_dropped says how many came before them).
 *  - A reply that was cut keeps the tokens that were shown, as after a cancel. A message that was being read is taken
 *    back, where a cancel would have.
 *  - Where the transcript was being read again (ORIEL_READ_AGAIN, oriel_resume), all of it is read, as that would have.
 *  - The first session of a model that recovers makes the device's part anew, and the prefix. The others stay lost until
 *    each is recovered, or destroyed. Memory that oriel_trim had given back is taken again, and a pause ends.
 *  - `result` may be NULL. A session that is not lost: nothing happens.
 *  - Progress and cancel as for every text that is read (oriel_session_options.progress), and as for oriel_resume.
 * On failure the session stays lost, and the call may be repeated:
 *  - ORIEL_ERROR_IO: the model's file, or the one that the prefix came from, is gone or another.
 *  - ORIEL_ERROR_NO_DEVICE, ORIEL_ERROR_OUT_OF_MEMORY, ORIEL_ERROR_DEVICE, ORIEL_ERROR_TIMEOUT: of the last device that
 *    was tried.
 *  - ORIEL_ERROR_STATE: a reply rests (oriel_pause), or the call comes from inside a callback of one on the model; or a
 *    prefix has to be read again by the session with the longest window.
 * Waits for running calls on the model's sessions; all waiting for a device that hangs is bounded by device_timeout_ms.
 * Borrows the ids of what is held and a message at a time, for the length of the call. */
ORIEL_API oriel_status oriel_session_recover(oriel_session *session, const oriel_recover_options *options,
                                             oriel_recovered *result);

/* ---- What went wrong ------------------------------------------------------------------------- */

/* The line that the object's last failed call gave to the log, with a log callback or without, its first 511 bytes at
 * most; "" if none failed, or for NULL. It stays until the next call that fails.
 *  - Calls that fail without a line (the rules of oriel.h) leave it as it is. So does one that is refused because another
 *    thread's call is running on the session.
 *  - A session's: of calls that take the session. oriel_session_reset forgets it, for it may quote what was said.
 *  - A model's: of calls that take the model only, oriel_session_create among them. With several threads it is that of any
 *    of them, and none may call the model while the text is read. oriel_model_load that fails has the log alone.
 * Valid until the next call on the object. */
ORIEL_API const char *oriel_session_last_error(const oriel_session *session);
ORIEL_API const char *oriel_model_last_error(const oriel_model *model);

#ifdef __cplusplus
}
#endif

#endif /* ORIEL_SESSIONS_H_ */
