// C calls in the form that JavaScript can make: positions are doubles, structs are filled here, and a result struct is
// reported field by field. Statuses and rules are those of oriel.h.
#pragma once

#include <oriel/advanced.h>

#include <cstddef>
#include <cstdint>

// Callbacks of the library and fields of results. host_library.js has them in WebAssembly, native/addon.cpp in Node.
extern "C" {
void oriel_host_log(int level, const char* message);
int oriel_host_progress(double done, double total);
int oriel_host_token(int32_t id, const char* text, size_t bytes, float logprob, uint32_t top_count,
                     const oriel_token_logprob* top);
int oriel_host_part(int kind, uint32_t call, const char* text, size_t bytes, const char* path);
int oriel_host_logits(double index, const float* logits, size_t count);
void oriel_host_number(const char* name, double value);
}

extern "C" {
oriel_status web_plan_describe(const char* path, const oriel_setting* settings, size_t count,
                               char* json, size_t capacity, size_t* needed);
oriel_status web_file_describe(const char* path, char* json, size_t capacity, size_t* needed);
oriel_status web_snapshot_describe(const void* data, size_t bytes, char* json, size_t capacity,
                                   size_t* needed);
oriel_status web_model_load(const char* path, const oriel_setting* settings, size_t count,
                            oriel_model** model);
oriel_status web_session_create(oriel_model* model, const oriel_setting* settings, size_t count,
                                oriel_session** session);
oriel_status web_render(const oriel_model* model, const oriel_setting* settings, size_t count,
                        const char* json, size_t bytes, uint32_t flags, char* text, size_t capacity,
                        size_t* needed);
oriel_status web_reply(oriel_session* session, int chat, const oriel_setting* settings,
                       size_t count);
oriel_status web_append(oriel_session* session, const int32_t* ids, size_t count, int with_logits);
oriel_status web_get_stats(const oriel_session* session);
oriel_status web_snapshot_restore(oriel_session* session, const void* data, size_t bytes,
                                  uint32_t flags);
oriel_status web_get_tokens(const oriel_session* session, double first, int32_t* ids,
                            size_t capacity, size_t* needed);
oriel_status web_go_back(oriel_session* session, oriel_back target, double number, const char* mark,
                         uint32_t flags);
oriel_status web_resume(oriel_model* model);
oriel_status web_recover(oriel_session* session, const char* device);
}
