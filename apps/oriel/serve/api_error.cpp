#include "serve/api_error.h"

namespace cli {
namespace {

const char* typeOf(const ApiError& error) {
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    case 500:
      return "server_error";
    case 503:
      return "service_unavailable_error";
    default:
      return "invalid_request_error";
  }
}

const char* messagesErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 500:
      return "api_error";
    case 503:
      return "overloaded_error";
    default:
      return "invalid_request_error";
  }
}

Json orNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

Json errorJson(const ApiError& error) {
  Json fields;
  fields["message"] = error.message;
  fields["type"] = typeOf(error);
  fields["param"] = orNull(error.param);
  fields["code"] = orNull(error.code);
  Json json;
  json["error"] = std::move(fields);
  return json;
}

Json messagesError(const ApiError& error) {
  Json json;
  json["type"] = "error";
  json["error"]["type"] = messagesErrorType(error.status);
  json["error"]["message"] = error.message;
  return json;
}

Json ollamaError(const ApiError& error) {
  Json json;
  json["error"] = error.message;
  return json;
}

ApiError wrongField(const std::string& param, const std::string& what_it_must_be) {
  return {400, param + " must be " + what_it_must_be, param, "invalid_value", 0};
}

ApiError failedCall(oriel_status status, const std::string& line) {
  const std::string reason =
      line.empty() ? std::string(oriel_status_text(status)) + ": look at the server's log" : line;
  switch (status) {
    case ORIEL_ERROR_CONTEXT:
      return {400, reason, "", "context_length_exceeded", 0};
    case ORIEL_ERROR_ARGUMENT:
    case ORIEL_ERROR_TEXT:
    case ORIEL_ERROR_FORMAT:
    case ORIEL_ERROR_UNSUPPORTED:
    case ORIEL_ERROR_STATE:
      return {400, reason, "", "", 0};
    case ORIEL_ERROR_DEVICE:
    case ORIEL_ERROR_TIMEOUT:
      return {503, reason, "", kDeviceLost, 0};
    case ORIEL_ERROR_OUT_OF_MEMORY:
      return {503, reason, "", "out_of_memory", 5};
    default:
      return {500, reason, "", "", 0};
  }
}

}  // namespace cli
