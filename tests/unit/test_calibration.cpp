// Measured constants in place of the published priors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "oriel/tools.h"
#include "support/captured_log.h"
#include "support/describe.h"

namespace oriel_internal::test::test_calibration {
namespace {

const char* const kModel = ORIEL_TEST_DATA "/models/llama-mqa.gguf";

struct Planned {
  oriel_status status = ORIEL_OK;
  FullPlan plan = {ORIEL_PLAN_INIT, {}};
};

Planned planWith(const oriel_calibration* calibration, CapturedLog* log = nullptr) {
  Options options;
  options.memory_bytes = 64u << 20;
  options.window_tokens = 100;
  options.calibration = calibration;
  if (log != nullptr) {
    options.log = log->log().callback;
    options.log_user = log->log().user;
  }
  Planned planned;
  planned.status = oriel_plan_file(kModel, &options, &planned.plan);
  if (planned.status == ORIEL_OK) {
    planned.plan.all = describePlan(kModel, options);
  }
  return planned;
}

oriel_calibration blank() { return ORIEL_INIT(oriel_calibration); }

TEST(Calibration, its_constants_are_the_expected_loss) {
  oriel_calibration calibration = blank();
  calibration.forget_scale = 3;
  calibration.forget_power = 0.5;
  const Planned planned = planWith(&calibration);
  ASSERT_EQ(ORIEL_OK, planned.status);
  EXPECT_EQ(true, planned.plan["calibrated"]);
  EXPECT_EQ(ORIEL_KV_F16, planned.plan.k_format);
  EXPECT_NEAR(3 / std::sqrt(104.0), planned.plan.loss_nats, 1e-12);
}

TEST(Calibration, a_constant_of_zero_is_the_prior) {
  const Planned priors = planWith(nullptr);
  EXPECT_EQ(false, priors.plan["calibrated"]);
  const oriel_calibration calibration = blank();
  const Planned planned = planWith(&calibration);
  EXPECT_EQ(true, planned.plan["calibrated"]);
  EXPECT_EQ(priors.plan.loss_nats, planned.plan.loss_nats);
  for (uint32_t i = 0; i < priors.plan["choices"].size(); ++i) {
    EXPECT_EQ(priors.plan["choices"].at(i).at("loss_nats"),
              planned.plan["choices"].at(i).at("loss_nats"));
  }
}

TEST(Calibration, what_no_measurement_can_give_is_refused) {
  double oriel_calibration::*const constants[] = {
      &oriel_calibration::forget_scale, &oriel_calibration::forget_power,
      &oriel_calibration::keys_int8,    &oriel_calibration::keys_int4,
      &oriel_calibration::values_int8,  &oriel_calibration::values_int4,
      &oriel_calibration::state_f16,    &oriel_calibration::state_int8};
  for (const auto constant : constants) {
    for (const double value : {-1e-9, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
      oriel_calibration calibration = blank();
      calibration.*constant = value;
      CapturedLog log;
      EXPECT_EQ(ORIEL_ERROR_ARGUMENT, planWith(&calibration, &log).status) << value;
      EXPECT_TRUE(log.says("calibration"));
    }
  }
  oriel_calibration forgotten = blank();
  forgotten.struct_size = 0;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, planWith(&forgotten).status);
}

TEST(Calibration, a_format_that_failed_is_never_chosen) {
  oriel_calibration calibration = blank();
  calibration.keys_int4 = calibration.keys_int8 = 0.5;
  calibration.forget_scale = 1e6;  // forgetting dominates
  calibration.forget_power = 0.1;
  const Planned failed = planWith(&calibration);
  EXPECT_EQ(ORIEL_KV_F16, failed.plan.k_format);
  ASSERT_EQ(4u, failed.plan["choices"].size());
  EXPECT_EQ("quality", failed.plan["choices"].at(0).at("refused"));
  EXPECT_EQ("quality", failed.plan["choices"].at(2).at("refused"));
  EXPECT_TRUE(failed.plan["choices"].at(3).at("refused").is_null());
  calibration.kl_limit = 1;
  EXPECT_TRUE(planWith(&calibration).plan["choices"].at(0).at("refused").is_null());
}

TEST(Calibration, of_another_number_of_layers_is_refused) {
  oriel_layer_calibration layers[3] = {};
  oriel_calibration calibration = blank();
  calibration.layers = layers;
  for (const uint32_t count : {1u, 3u}) {
    calibration.layer_count = count;
    CapturedLog log;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, planWith(&calibration, &log).status);
    EXPECT_TRUE(log.says("layers"));
  }
  calibration.layer_count = 2;
  EXPECT_EQ(ORIEL_OK, planWith(&calibration).status);
  layers[1].values_int4 = -1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, planWith(&calibration).status);
  layers[1].values_int4 = 0;
  calibration.layer_count = 0;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, planWith(&calibration).status);
}

}  // namespace
}  // namespace oriel_internal::test::test_calibration
