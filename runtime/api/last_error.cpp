#include "oriel/advanced.h"

#include "api/api.h"

const char* oriel_session_last_error(const oriel_session* session) {
  return session != nullptr ? session->last_error.text() : "";
}

const char* oriel_model_last_error(const oriel_model* model) {
  return model != nullptr ? model->last_error.text() : "";
}
