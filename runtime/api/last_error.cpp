#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

const char* oriel_session_last_error(const oriel_session*) { return ""; }
const char* oriel_model_last_error(const oriel_model*) { return ""; }
