#include "grammar/schema_formats.h"

namespace oriel_internal {
namespace {

#define ORIEL_DAY_OF_YEAR                             \
  "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|" \
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define ORIEL_LEAP_CENTURY "(?:0[48]|[2468][048]|[13579][26])"
#define ORIEL_YEAR "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define ORIEL_DATE                                                                                \
  "(?:" ORIEL_YEAR "-" ORIEL_DAY_OF_YEAR "|(?:[0-9]{2}" ORIEL_LEAP_CENTURY "|" ORIEL_LEAP_CENTURY \
  "00)-02-29)"
// A date that is valid in every time zone.
#define ORIEL_INNER_DATE                                                    \
  "(?:[1-8][0-9]{3}-" ORIEL_DAY_OF_YEAR "|(?:[1-8][0-9]" ORIEL_LEAP_CENTURY \
  "|"                                                                       \
  "(?:[2468][048]|[1357][26])00)-02-29)"
#define ORIEL_TIME                                               \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?" \
  "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
// Host names: six labels of up to 21 letters and digits have at most 251 of the allowed 253 characters. Excludes "--",
// which only Punycode has. The last label begins with a letter, so it is not mistaken for part of an address.
#define ORIEL_LABEL "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,20}"
#define ORIEL_LAST_LABEL "[A-Za-z](?:-?[A-Za-z0-9]){0,20}"
#define ORIEL_HOST "(?:" ORIEL_LABEL "\\.){0,5}" ORIEL_LAST_LABEL
#define ORIEL_MAIL_HOST "(?:" ORIEL_LABEL "\\.){1,3}[A-Za-z]{2,10}"
#define ORIEL_OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define ORIEL_IPV4 "(?:" ORIEL_OCTET "\\.){3}" ORIEL_OCTET
#define ORIEL_GROUP "[0-9A-Fa-f]{1,4}"
#define ORIEL_IPV6                                                                          \
  "(?:(?:" ORIEL_GROUP ":){7}" ORIEL_GROUP "|::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP          \
  "){0,5})?|"                                                                               \
  "" ORIEL_GROUP "(?:::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP "){0,4})?|:" ORIEL_GROUP         \
  "(?:::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP "){0,3})?|:" ORIEL_GROUP "(?:::(?:" ORIEL_GROUP \
  "(?:"                                                                                     \
  ":" ORIEL_GROUP "){0,2})?|:" ORIEL_GROUP "(?:::(?:" ORIEL_GROUP "(?::" ORIEL_GROUP        \
  "){0,1})?|:" ORIEL_GROUP "::(?:" ORIEL_GROUP ")?)))))"
// RFC 3986.
#define ORIEL_PORT                                                                                 \
  "(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6(?:[0-4][0-9]{3}|5(?:[0-4][0-9]{2}|5(?:[0-2][0-9]|3[0-5]" \
  ")))))?"
#define ORIEL_ESCAPED "%[0-9A-Fa-f]{2}"
#define ORIEL_PATH_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|" ORIEL_ESCAPED ")"
#define ORIEL_USER "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]*)?@)?"
#define ORIEL_AUTHORITY                                                          \
  ORIEL_USER "(?:" ORIEL_HOST "|" ORIEL_IPV4 "|\\[" ORIEL_IPV6 "\\])" ORIEL_PORT \
             "(?:/" ORIEL_PATH_CHAR "*)*"
#define ORIEL_QUERY_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ORIEL_ESCAPED ")"
#define ORIEL_TAIL "(?:\\?" ORIEL_QUERY_CHAR "*)?(?:#" ORIEL_QUERY_CHAR "*)?"
#define ORIEL_SCHEME "[A-Za-z][A-Za-z0-9+.-]*:"
#define ORIEL_URI                                                           \
  "(?:" ORIEL_SCHEME "(?://" ORIEL_AUTHORITY "|[A-Za-z0-9]" ORIEL_PATH_CHAR \
  "*(?:/" ORIEL_PATH_CHAR "*)*)|file://(?:/" ORIEL_PATH_CHAR "+)+)" ORIEL_TAIL
// The first part of a relative path has no colon. A path cannot begin with two slashes.
#define ORIEL_RELATIVE                                                    \
  "(?://" ORIEL_AUTHORITY "|/(?:" ORIEL_PATH_CHAR "+(?:/" ORIEL_PATH_CHAR \
  "*)*)?|"                                                                \
  "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|" ORIEL_ESCAPED ")+(?:/" ORIEL_PATH_CHAR "*)*)?" ORIEL_TAIL

// Shorter forms, used when a length limit is below the longest text of the usual form. Their lengths need no counting.
#define ORIEL_SHORT_TAIL "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]){0,64}"
#define ORIEL_BRIEF_URI \
  "https?://" ORIEL_MAIL_HOST "(?::[1-9][0-9]{0,3})?(?:/" ORIEL_SHORT_TAIL ")?"
#define ORIEL_SHORT_HOST "(?:[A-Za-z0-9]{1,12}\\.){1,2}[A-Za-z]{2,4}"
#define ORIEL_SHORT_URI \
  "https?://" ORIEL_SHORT_HOST "(?::[1-9][0-9]{0,3})?(?:/" ORIEL_SHORT_TAIL ")?"
// A relative path: a slash, then another character.
#define ORIEL_SHORT_PATH "/(?:[A-Za-z0-9._~-]" ORIEL_SHORT_TAIL ")?"

struct Format {
  const char* name;
  const char* patterns[kFormatForms];  ///< each with fewer texts; null: as before
  bool exact;
};

constexpr Format kFormats[] = {
    {"date", {ORIEL_DATE}, true},
    {"time", {ORIEL_TIME}, false},
    {"date-time", {ORIEL_INNER_DATE "T" ORIEL_TIME}, false},
    {"duration",
     {"P(?:[0-9]{1,4}W|(?:[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|[0-9]{1,4}M(?:[0-9]{1,4}D)?|"
      "[0-9]{1,4}D)(?:T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|"
      "[0-9]{1,4}S))?|T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|"
      "[0-9]{1,4}S))"},
     false},
    {"email",
     {"[A-Za-z0-9_](?:[.+-]?[A-Za-z0-9_]){0,23}@" ORIEL_MAIL_HOST,
      "[A-Za-z0-9_](?:[.+-]?[A-Za-z0-9_]){0,11}@" ORIEL_SHORT_HOST},
     false},
    {"hostname", {ORIEL_HOST, ORIEL_SHORT_HOST}, false},
    {"uuid", {"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"}, true},
    {"ipv4", {ORIEL_IPV4}, true},
    {"ipv6", {ORIEL_IPV6}, false},
    {"json-pointer", {"(?:/(?:[^~/]|~[01])*)*"}, true},
    {"uri", {ORIEL_URI, ORIEL_BRIEF_URI, ORIEL_SHORT_URI}, false},
    {"uri-reference",
     {ORIEL_URI "|" ORIEL_RELATIVE, ORIEL_BRIEF_URI "|" ORIEL_SHORT_PATH,
      ORIEL_SHORT_URI "|" ORIEL_SHORT_PATH},
     false},
};

const Format* findFormat(const JsonText& name) {
  for (const Format& format : kFormats) {
    if (name.is(format.name)) {
      return &format;
    }
  }
  return nullptr;
}

}  // namespace

const char* formatPattern(const JsonText& format, uint32_t form) {
  const Format* const known = findFormat(format);
  while (known != nullptr && form != 0 && known->patterns[form] == nullptr) {
    --form;
  }
  return known != nullptr ? known->patterns[form] : nullptr;
}

bool isFormatExact(const JsonText& format) {
  const Format* const known = findFormat(format);
  return known != nullptr && known->exact;
}

}  // namespace oriel_internal
