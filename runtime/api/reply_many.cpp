#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_reply_many(oriel_reply*, size_t) { return ORIEL_ERROR_UNSUPPORTED; }
