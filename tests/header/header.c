/* Strict C and C++ alone, and as the module that Swift imports. */
#include <oriel/advanced.h>

oriel_status oriel_test_header(oriel_options* options);
oriel_status oriel_test_header(oriel_options* options) {
  const oriel_setting setting = {"kv", "k8v4"};
  oriel_options fresh = ORIEL_OPTIONS_INIT;
  const oriel_session_options session = ORIEL_SESSION_OPTIONS_INIT;
  const oriel_reply_options reply = ORIEL_REPLY_OPTIONS_INIT;
  const oriel_plan plan = ORIEL_PLAN_INIT;
  const oriel_stats stats = ORIEL_STATS_INIT;
  const oriel_recovered recovered = ORIEL_INIT(oriel_recovered);
  fresh.settings = &setting;
  fresh.setting_count = session.setting_count + reply.setting_count + 1;
  options->struct_size = fresh.struct_size;
  return plan.struct_size == stats.struct_size || recovered.on_cpu ? ORIEL_ERROR_INTERNAL
                                                                   : ORIEL_OK;
}
