// Measured constants in place of the published priors.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/oriel/measure/window_search.h"
#include "budget/loss.h"
#include "oriel/tools.h"
#include "support/captured_log.h"
#include "support/describe.h"
#include "support/encoding.h"
#include "support/golden.h"
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
  // In an ordinary run each byte becomes one or two of them: neighbours become the others.
  const size_t step = allCases() ? 1 : 7;
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

namespace oriel_internal::test_loss {

// The loss model: its priors reproduce published and simulated results.

namespace {

struct Pair {
  KvFormat k;
  KvFormat v;
  double bits;  ///< of a key and a value, scales included
};
constexpr Pair kF16 = {KvFormat::kF16, KvFormat::kF16, 32};
constexpr Pair kK8V8 = {KvFormat::kInt8, KvFormat::kInt8, 17};
constexpr Pair kK8V4 = {KvFormat::kInt8, KvFormat::kInt4, 13};
constexpr Pair kK4V4 = {KvFormat::kInt4, KvFormat::kInt4, 9};
constexpr Pair kPairs[] = {kK4V4, kK8V4, kK8V8, kF16};

ModelDesc modelOf(uint32_t layers, uint32_t context_train = 0) {
  ModelDesc model;
  model.n_layers = layers;
  model.n_heads = model.n_kv_heads = 1;
  model.head_dim = 128;
  model.context_train = context_train;
  makeLayersAlike(&model);
  return model;
}

double lossOf(const Pair& pair, uint64_t tokens, uint32_t context_train = 0, uint32_t layers = 24) {
  CacheFormats formats;
  formats.k = pair.k;
  formats.v = pair.v;
  return LossModel().expected(formats, modelOf(layers, context_train), 0,
                              static_cast<uint32_t>(tokens));
}

/// In the memory that `f16_tokens` take in f16.
double lossIn(const Pair& pair, double f16_tokens) {
  return lossOf(pair, static_cast<uint64_t>(f16_tokens * kF16.bits / pair.bits));
}

TEST(Loss, the_optimum_moves_from_4_to_8_bits_as_memory_grows) {
  const struct {
    double f16_tokens, f16, k8v8, k8v4, k4v4;
    size_t best;
  } rows[] = {{512, .109, .070, .062, .057, 0},
              {2048, .040, .0264, .0260, .029, 1},
              {8192, .0147, .0103, .0128, .019, 2}};
  for (const auto& row : rows) {
    EXPECT_NEAR(row.f16, lossIn(kF16, row.f16_tokens), row.f16 * .05);
    EXPECT_NEAR(row.k8v8, lossIn(kK8V8, row.f16_tokens), row.k8v8 * .05);
    EXPECT_NEAR(row.k8v4, lossIn(kK8V4, row.f16_tokens), row.k8v4 * .05);
    EXPECT_NEAR(row.k4v4, lossIn(kK4V4, row.f16_tokens), row.k4v4 * .05);
    for (const Pair& pair : kPairs) {
      EXPECT_LE(lossIn(kPairs[row.best], row.f16_tokens), lossIn(pair, row.f16_tokens))
          << row.f16_tokens;
    }
  }
}

TEST(Loss, a_longer_window_and_finer_formats_never_cost) {
  for (uint64_t tokens = 8; tokens < (1u << 20); tokens += tokens / 8 + 1) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_LT(lossOf(kPairs[i], tokens + 1), lossOf(kPairs[i], tokens));
      if (i > 0) {
        EXPECT_LT(lossOf(kPairs[i], tokens), lossOf(kPairs[i - 1], tokens));
      }
    }
  }
}

TEST(Loss, keys_are_several_times_as_sensitive_as_values) {
  const LossModel loss;
  EXPECT_GT(loss.keys_int8, 7 * loss.values_int8);
  EXPECT_GT(loss.keys_int4, 2 * loss.values_int4) << "rotated";
}

TEST(Loss, rounding_is_averaged_over_layers_and_raised_keys_are_exact) {
  EXPECT_DOUBLE_EQ(lossOf(kK8V4, 1000, 0, 8), lossOf(kK8V4, 1000, 0, 80));
  CacheFormats formats;
  formats.k = KvFormat::kInt4;
  const double all = LossModel().expected(formats, modelOf(4), 0, 1000);
  formats.requireF16(0);
  formats.requireF16(3);
  const double half = LossModel().expected(formats, modelOf(4), 0, 1000);
  EXPECT_NEAR(LossModel().keys_int4 / 2, all - half, 1e-12);
}

TEST(Loss, layers_share_the_rounding_as_they_were_measured) {
  LayerCalibration layers[4] = {};
  layers[0].keys_int4 = 7;
  layers[1].keys_int4 = layers[2].keys_int4 = layers[3].keys_int4 = 1;
  LossModel loss;
  loss.layers = layers;
  CacheFormats formats;
  formats.k = KvFormat::kInt4;
  EXPECT_NEAR(loss.keys_int4, loss.roundingOfKeys(formats, modelOf(4)), 1e-15);
  formats.keepF16(0);
  EXPECT_NEAR(loss.keys_int4 * 0.3, loss.roundingOfKeys(formats, modelOf(4)), 1e-15);
  formats.keepF16(1);
  formats.keepF16(2);
  formats.keepF16(3);
  EXPECT_EQ(0, loss.roundingOfKeys(formats, modelOf(4)));
  EXPECT_EQ(0, loss.roundingOfValues(formats, modelOf(4)));
}

TEST(Loss, small_heads_make_keys_dearer) {
  const auto scaleOf = [](std::initializer_list<uint32_t> head_dims) {
    ModelDesc model = modelOf(static_cast<uint32_t>(head_dims.size()));
    for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
      LayerKind kind = model.kinds[0];
      kind.head_dim = head_dims.begin()[layer];
      model.layers[layer].kind = addKind(kind, &model);
    }
    return LossModel::keyPriorScale(model);
  };
  EXPECT_EQ(1, scaleOf({128, 128, 128}));
  EXPECT_EQ(2, scaleOf({64}));
  EXPECT_EQ(128.0 / 96, scaleOf({96, 96, 96, 96, 96, 96, 96}));
  EXPECT_GT(LossModel().keys_int4 * scaleOf({8, 8}), LossModel().kl_limit)
      << "measured 0.25 nats on a model with heads of 8";
  EXPECT_EQ(0.4, scaleOf({512, 256, 256, 256})) << "of the mean";
}

TEST(Loss, past_the_trained_context_more_is_worse) {
  for (const uint32_t trained : {1024u, 8192u, 131072u}) {
    EXPECT_DOUBLE_EQ(lossOf(kF16, trained), lossOf(kF16, trained, trained));
    double last = lossOf(kF16, trained, trained);
    for (uint64_t tokens = trained + trained / 8; tokens < 16ull * trained; tokens *= 2) {
      EXPECT_GT(lossOf(kF16, tokens, trained), last);
      last = lossOf(kF16, tokens, trained);
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test_loss

namespace oriel_internal::test::test_distances {
namespace {

TEST(Distances, the_worse_of_two_errors_is_the_greater_one) {
  EXPECT_EQ(2.0, worse(1, 2));
  EXPECT_EQ(2.0, worse(2, 1));
  EXPECT_EQ(HUGE_VAL, worse(2, HUGE_VAL));
}

TEST(Distances, what_is_not_a_number_stays_the_worst) {
  EXPECT_TRUE(std::isnan(worse(1, NAN)));
  EXPECT_TRUE(std::isnan(worse(NAN, 1)));
  EXPECT_TRUE(std::isnan(worse(worse(worse(0, NAN), 2), HUGE_VAL)));
}

}  // namespace
}  // namespace oriel_internal::test::test_distances

namespace cli {

// Shortening of layers' windows, with scores from a formula.

namespace {

// Alone layer k costs 11 - k, except for two whose loss is NaN.
TEST(WindowSearch, layers_whose_loss_is_no_number_cost_most) {
  constexpr uint32_t kLayers = 11;
  std::vector<uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  size_t calls = 0;
  const ScoreWindows score = [&](uint32_t, const std::vector<uint8_t>& shares) {
    if (++calls > kLayers) {  // of groups
      double sum = 0;
      for (const uint8_t share : shares) {
        sum += share == 0 ? 0 : 256 - share;
      }
      return sum;
    }
    for (uint32_t k = 0; k < kLayers; ++k) {
      if (shares[k] != 0) {
        return k == 4 || k == 7 ? std::numeric_limits<double>::quiet_NaN()
                                : double{kLayers} - static_cast<double>(k);
      }
    }
    return 0.0;
  };
  const std::vector<MeasuredWindows> found = searchWindows(kLayers, layers, 512, score);
  ASSERT_FALSE(found.empty());
  // In order of cost 10 9 8 6 5 3 2 1 0, then 4 and 7: groups take 1, 1, 2, 1, 1, 2, 1 and 2 of them.
  const std::vector<std::vector<uint32_t>> groups = {{10}, {9},    {8, 6}, {5},
                                                     {3},  {2, 1}, {0},    {4, 7}};
  for (const MeasuredWindows& windows : found) {
    for (const std::vector<uint32_t>& group : groups) {
      EXPECT_EQ(windows.shares[group.front()], windows.shares[group.back()]) << group.front();
    }
  }
}

}  // namespace
}  // namespace cli
