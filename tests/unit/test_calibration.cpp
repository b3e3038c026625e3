// Measured constants in place of the published priors.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "budget/calibration_file.h"
#include "oriel/tools.h"
#include "support/captured_log.h"
#include "support/describe.h"
#include "support/read_files.h"
#include "support/target.h"

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

namespace oriel_internal::test::test_calibration_file {

// The output of `oriel calibrate`, and any other contents of that file.

namespace {

const std::string kBundled = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

std::string contents(const std::string& path) {
  const std::vector<uint8_t> bytes = readBytes(path);
  return {bytes.begin(), bytes.end()};
}

/// A text in pieces of `size` bytes, each in its own block: a sanitizer detects over-reads.
struct Pieces {
  std::string text;
  size_t piece = SIZE_MAX;
  size_t at = 0;
  size_t handed_out = 0;

  static size_t read(void* self_context, void* buffer, size_t capacity) {
    auto* const self = static_cast<Pieces*>(self_context);
    const size_t bytes = std::min({capacity, self->piece, self->text.size() - self->at});
    std::memcpy(buffer, self->text.data() + self->at, bytes);
    self->at += bytes;
    self->handed_out += bytes;
    return bytes;
  }
};

struct ReadBack {
  CalibrationFault fault;
  std::unique_ptr<CalibrationFile> file = std::make_unique<CalibrationFile>();
};

ReadBack readText(const std::string& text, size_t piece = SIZE_MAX) {
  Pieces pieces{text, piece};
  ReadBack result;
  result.fault = readCalibrationFile({Pieces::read, &pieces}, result.file.get());
  return result;
}

std::string withConstant(const std::string& value) {
  return R"({"version": 1, "model": {"file_bytes": 1, "hash": "00000000000000ff"}, "constants": {"keys_int8": )" +
         value + "}}";
}

std::string withWindows(const std::string& list) {
  return R"({"version": 1, "model": {"file_bytes": 1, "hash": "00000000000000ff"}, "constants": {}, "windows": )" +
         list + "}";
}

TEST(CalibrationFile, windows_by_layer_are_read) {
  const ReadBack got = readText(withWindows(
      R"([{"window_tokens": 508, "loss_nats": -0.0125, "shares": [0, 64, 255], "more": [1]},)"
      R"( {"shares": [0, 0, 0], "loss_nats": 0, "window_tokens": 1000}])"));
  ASSERT_EQ(CalibrationFault::kNone, got.fault);
  const Calibration& constants = got.file->constants;
  ASSERT_EQ(2u, constants.profile_count);
  EXPECT_EQ(3u, constants.profile_layers);
  EXPECT_EQ(508u, constants.profiles[0].window);
  EXPECT_DOUBLE_EQ(-0.0125, constants.profiles[0].loss);
  EXPECT_EQ(64u, constants.profiles[0].parts[1]);
  EXPECT_EQ(255u, constants.profiles[0].parts[2]);
  EXPECT_TRUE(constants.profiles[1].isUniform(3));
  EXPECT_EQ(0u, readText(withWindows("null")).file->constants.profile_count);
}

TEST(CalibrationFile, windows_that_nobody_could_have_measured_are_refused) {
  for (const char* list : {"{}", "[1]", R"([{"loss_nats": 0, "shares": [0]}])",
                           R"([{"window_tokens": 0, "loss_nats": 0, "shares": [0]}])",
                           R"([{"window_tokens": 1e12, "loss_nats": 0, "shares": [0]}])",
                           R"([{"window_tokens": 64, "shares": [0]}])",
                           R"([{"window_tokens": 64, "loss_nats": 1e999, "shares": [0]}])",
                           R"([{"window_tokens": 64, "loss_nats": 0, "shares": []}])",
                           R"([{"window_tokens": 64, "loss_nats": 0, "shares": [256]}])",
                           R"([{"window_tokens": 64, "loss_nats": 0, "shares": [-1]}])",
                           R"([{"window_tokens": 64, "loss_nats": 0, "shares": [0]},)"
                           R"( {"window_tokens": 64, "loss_nats": 0, "shares": [0, 0]}])"}) {
    EXPECT_EQ(CalibrationFault::kConstant, readText(withWindows(list)).fault) << list;
  }
  std::string many = "[";
  for (int i = 0; i < 65; ++i) {
    many +=
        std::string(i == 0 ? "" : ",") + R"({"window_tokens": 64, "loss_nats": 0, "shares": [0]})";
  }
  EXPECT_EQ(CalibrationFault::kConstant, readText(withWindows(many + "]")).fault);
}

TEST(CalibrationFile, the_bundled_one_is_read_whatever_pieces_it_comes_in) {
  const std::string text = contents(kBundled + ".calibration.json");
  const nlohmann::json want = nlohmann::json::parse(text);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}}) {
    const ReadBack got = readText(text, piece);
    ASSERT_EQ(CalibrationFault::kNone, got.fault);
    const CalibrationFile& file = *got.file;
    const std::string model = contents(kBundled);
    EXPECT_EQ(model.size(), file.model_bytes);
    EndsHash hash;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(model.data());
    hash.add(bytes, EndsHash::kBytes);
    hash.add(bytes + model.size() - EndsHash::kBytes, EndsHash::kBytes);
    EXPECT_EQ(hash.value(), file.model_hash);
    EXPECT_DOUBLE_EQ(want["constants"]["forget_scale"].get<double>(), file.constants.forget_scale);
    EXPECT_DOUBLE_EQ(want["constants"]["values_int4"].get<double>(), file.constants.values_int4);
    ASSERT_EQ(want["layers"].size(), file.constants.layer_count);
    ASSERT_EQ(file.layers, file.constants.layers);
    for (size_t i = 0; i < want["layers"].size(); ++i) {
      EXPECT_DOUBLE_EQ(want["layers"][i]["keys_int8"].get<double>(), file.layers[i].keys_int8);
      EXPECT_DOUBLE_EQ(want["layers"][i]["values_int4"].get<double>(), file.layers[i].values_int4);
    }
  }
}

TEST(CalibrationFile, a_byte_order_mark_is_skipped) {
  const std::string text = contents(kBundled + ".calibration.json");
  for (const size_t piece : {size_t{1}, size_t{4096}}) {
    EXPECT_EQ(CalibrationFault::kNone, readText("\xEF\xBB\xBF" + text, piece).fault);
    EXPECT_EQ(CalibrationFault::kNotOne, readText("\xEF\xBB" + text, piece).fault);
  }
}

TEST(CalibrationFile, numbers_are_what_they_say) {
  for (const char* number : {"0", "1", "0.1", "10.25", "1e3", "1E+3", "1.5e-9", "123456789012345",
                             "2.516278059853143e-05", "1.0151052405560189e-05", "4.9e-324",
                             "1e-400", "1.7976931348623157e99", "100000000000000000000000000000"}) {
    const ReadBack got = readText(withConstant(number));
    ASSERT_EQ(CalibrationFault::kNone, got.fault) << number;
    const double want = std::strtod(number, nullptr);
    EXPECT_NEAR(want, got.file->constants.keys_int8, want * 1e-15) << number;
  }
  for (const char* number : {"-1", "-0.5", "1e999", "1e101", "\"1\"", "true", "[]", "{}"}) {
    EXPECT_EQ(CalibrationFault::kConstant, readText(withConstant(number)).fault) << number;
  }
  for (const char* number :
       {"01", "1.", ".5", "1e", "1e+", "--1", "+1", "0x10", "1 2", "NaN", "inf", ""}) {
    EXPECT_NE(CalibrationFault::kNone, readText(withConstant(number)).fault) << number;
  }
  EXPECT_EQ(CalibrationFault::kNone, readText(withConstant("null")).fault);
}

TEST(CalibrationFile, what_formats_of_states_cost_is_read_where_it_is_there) {
  EXPECT_EQ(0, readText(withConstant("2")).file->constants.state_f16);
  const ReadBack got = readText(withConstant(R"(2, "state_f16": 0.25, "state_int8": 0.5)"));
  ASSERT_EQ(CalibrationFault::kNone, got.fault);
  EXPECT_EQ(0.25, got.file->constants.state_f16);
  EXPECT_EQ(0.5, got.file->constants.state_int8);
}

TEST(CalibrationFile, what_is_not_known_is_skipped) {
  const std::string known = withConstant("2");
  for (const std::string unknown :
       {R"("a": 1, )", R"("a": "\"}\\", )",
        R"("a": [[], {}, [{"b": [null, true, false, -1.5e3]}]], )",
        R"("keys_int8 and a very long name that no constant has": [1], )", R"("": {}, )"}) {
    const ReadBack got = readText("{" + unknown + known.substr(1));
    EXPECT_EQ(CalibrationFault::kNone, got.fault) << unknown;
    EXPECT_EQ(2, got.file->constants.keys_int8);
    EXPECT_EQ(0xffu, got.file->model_hash);
  }
}

TEST(CalibrationFile, a_part_of_one_is_none) {
  const std::string text = contents(kBundled + ".calibration.json");
  const size_t end = text.find_last_of('}');
  for (size_t bytes = 0; bytes <= end; ++bytes) {
    ASSERT_EQ(CalibrationFault::kNotOne, readText(text.substr(0, bytes), 64).fault) << bytes;
  }
  EXPECT_EQ(CalibrationFault::kNotOne, readText(text + "x").fault);
  EXPECT_EQ(CalibrationFault::kVersion, readText(R"({"version": 2, )").fault);
}

TEST(CalibrationFile, no_changed_byte_does_harm) {
  const std::string text = contents(kBundled + ".calibration.json");
  const char others[] = {'\0', '"', '\\', '{', '}', '[', ']', ',', '9', '-', 'e', '\xff'};
  // In an ordinary run each byte becomes a third of them: neighbours become the others.
  const size_t step = allCases() ? 1 : 3;
  for (size_t at = 0; at < text.size(); ++at) {
    for (size_t i = at % step; i < std::size(others); i += step) {
      std::string changed = text;
      changed[at] = others[i];
      (void)readText(changed, 100);
    }
  }
}

TEST(CalibrationFile, however_long_and_deep_little_of_it_is_read) {
  const std::string lists(1000000, '[');
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < 100000; ++i) {
      text += "{\"a\":";
    }
    return text;
  }();
  for (const std::string& deep : {lists, objects, "{\"a\": " + lists, "{\"layers\": " + lists,
                                  "{\"constants\": {\"a\": " + lists}) {
    Pieces pieces{deep};
    CalibrationFile file;
    EXPECT_NE(CalibrationFault::kNone, readCalibrationFile({Pieces::read, &pieces}, &file));
    EXPECT_LT(pieces.handed_out, 4096u);
  }
  for (const std::string& long_one :
       {"{\"" + std::string(3000000, 'a'), "{\"version\": " + std::string(3000000, '1'),
        std::string(3000000, ' ')}) {
    Pieces pieces{long_one};
    CalibrationFile file;
    EXPECT_NE(CalibrationFault::kNone, readCalibrationFile({Pieces::read, &pieces}, &file));
    EXPECT_LE(pieces.handed_out, kMaxCalibrationBytes + 1024);
  }
}

TEST(CalibrationFile, more_layers_than_any_model_has_are_refused) {
  const auto layers = [](uint32_t count) {
    nlohmann::json json = nlohmann::json::parse(withConstant("1"));
    for (uint32_t i = 0; i < count; ++i) {
      json["layers"].push_back(
          {{"keys_int8", 1}, {"keys_int4", 2}, {"values_int8", 3}, {"values_int4", 4}});
    }
    return readText(json.dump(2)).fault;
  };
  EXPECT_EQ(CalibrationFault::kNone, layers(kMaxLayers));
  EXPECT_EQ(CalibrationFault::kConstant, layers(kMaxLayers + 1));
}

}  // namespace
}  // namespace oriel_internal::test::test_calibration_file
