// Calibration files: the reader, compared with a JSON library, and a plan with the result.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "budget/loss.h"
#include "fuzz/fuzz.h"
#include "fuzz/use_model.h"
#include "support/describe.h"
#include "support/random_llama.h"

namespace oriel_internal::fuzz::fuzz_calibration {
namespace {

using nlohmann::json;

/// A text in pieces of `size` bytes, each in its own block.
struct Pieces {
  Pieces(const uint8_t* data, size_t size, size_t most) : text(data, data + size), piece(most) {}
  static size_t read(void* context, void* buffer, size_t capacity) {
    auto* const self = static_cast<Pieces*>(context);
    const size_t bytes = std::min({capacity, self->piece, self->text.size() - self->at});
    std::copy_n(self->text.data() + self->at, bytes, static_cast<uint8_t*>(buffer));
    self->at += bytes;
    return bytes;
  }
  std::vector<uint8_t> text;
  size_t piece;
  size_t at = 0;
};

struct ReadBack {
  ReadBack(const uint8_t* data, size_t size, size_t piece) {
    Pieces pieces(data, size, piece);
    fault = readCalibrationFile({Pieces::read, &pieces}, file.get());
  }
  CalibrationFault fault;
  std::unique_ptr<CalibrationFile> file = std::make_unique<CalibrationFile>();
};

bool isMeasurement(double value) { return std::isfinite(value) && value >= 0; }

void expectSound(const CalibrationFile& file) {
  const Calibration& c = file.constants;
  for (const double value : {c.forget_scale, c.forget_power, c.keys_int8, c.keys_int4,
                             c.values_int8, c.values_int4, c.kl_limit, c.state_f16, c.state_int8}) {
    EXPECT_TRUE(isMeasurement(value)) << value;
  }
  ASSERT_LE(c.layer_count, kMaxLayers);
  ASSERT_LE(c.profile_count, kMaxWindowProfiles);
  EXPECT_EQ(c.profile_count != 0 ? file.profiles : nullptr, c.profiles);
  for (uint32_t i = 0; i < c.profile_count; ++i) {
    EXPECT_TRUE(std::isfinite(file.profiles[i].loss));
    EXPECT_TRUE(file.profiles[i].window >= 1 && file.profiles[i].window <= kMaxWindow);
  }
  EXPECT_EQ(c.layer_count != 0 ? file.layers : nullptr, c.layers);
  for (uint32_t i = 0; i < c.layer_count; ++i) {
    const LayerCalibration& layer = file.layers[i];
    EXPECT_TRUE(isMeasurement(layer.keys_int8) && isMeasurement(layer.keys_int4) &&
                isMeasurement(layer.values_int8) && isMeasurement(layer.values_int4));
  }
}

// For a text that the library also reads, without duplicate names: equal numbers.
void compare(const json& said, const CalibrationFile& file) {
  const json& constants = said.at("constants");
  if (constants.contains("keys_int4") && constants["keys_int4"].is_number()) {
    const double value = constants["keys_int4"].get<double>();
    EXPECT_LE(std::fabs(value - file.constants.keys_int4), 1e-14 * std::fabs(value) + 1e-300);
  }
  if (said.contains("layers") && said["layers"].is_array()) {
    EXPECT_EQ(said["layers"].size(), file.constants.layer_count);
  }
  if (said.contains("windows") && said["windows"].is_array()) {
    ASSERT_EQ(said["windows"].size(), file.constants.profile_count);
    for (uint32_t i = 0; i < file.constants.profile_count; ++i) {
      const json& entry = said["windows"][i];
      EXPECT_EQ(entry["shares"].size(), file.constants.profile_layers);
      EXPECT_EQ(static_cast<uint32_t>(entry["window_tokens"].get<double>()),
                file.profiles[i].window);
    }
  }
}

bool hasTwins(const uint8_t* data, size_t size) {
  bool twins = false;
  std::vector<std::vector<std::string>> names;
  const json::parser_callback_t note = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) {
      names.emplace_back();
    } else if (event == json::parse_event_t::object_end && !names.empty()) {
      names.pop_back();
    } else if (event == json::parse_event_t::key && !names.empty()) {
      const std::string name = parsed.get<std::string>();
      twins = twins || std::count(names.back().begin(), names.back().end(), name) != 0;
      names.back().push_back(name);
    }
    return true;
  };
  const json parsed = json::parse(data, data + size, note, false);
  return twins || parsed.is_discarded();
}

/// A model for calibrations.
struct ModelOnDisk {
  ModelOnDisk() : path("calibrated"), bytes(test::RandomLlama().bytes()) { path.write(bytes); }
  static const ModelOnDisk& get() {
    static const ModelOnDisk one;
    return one;
  }
  std::string hash() const {
    EndsHash sum;
    sum.add(bytes.data(), bytes.size());
    sum.add(bytes.data(), bytes.size());
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(sum.value()));
    return text;
  }
  InputPath path;
  const std::vector<uint8_t> bytes;
};

void planWith(const char* calibration, CalibrationFault fault) {
  Watch watch;
  test::Options options;
  options.device = "cpu";
  options.memory_bytes = 2 << 20;
  options.set("calibration", calibration);
  const Log log = watch.log();
  options.log = log.callback;
  options.log_user = log.user;
  options.allocator = watch.allocator();
  oriel_plan plan = ORIEL_PLAN_INIT;
  const oriel_status status =
      watch.ended(oriel_plan_file(ModelOnDisk::get().path.c_str(), &options, &plan));
  EXPECT_TRUE(status == ORIEL_ERROR_FORMAT ||
              (status == ORIEL_OK && fault == CalibrationFault::kNone))
      << status;
  if (status == ORIEL_OK) {
    EXPECT_EQ(true, test::describePlan(ModelOnDisk::get().path.c_str(), options).at("calibrated"));
    EXPECT_TRUE(std::isfinite(plan.loss_nats)) << plan.loss_nats;
  }
}

std::string calibration(const std::string& hash, size_t layers, const std::string& more) {
  std::string text =
      R"({"format": "oriel calibration", "version": 1, "model": {"file_bytes": )" +
      std::to_string(ModelOnDisk::get().bytes.size()) + R"(, "hash": ")" + hash +
      R"("}, "constants": {"forget_scale": 139.0162907853924, "forget_power": 1.62, "keys_int8": 2.5e-05,
 "keys_int4": 0.005, "values_int8": 1e-5, "values_int4": 0.00178, "kl_limit": 0.1, "state_f16": null})" +
      more;
  for (size_t i = 0; i < layers; ++i) {
    text +=
        (i == 0 ? R"(, "layers": [)" : ", ") +
        std::string(
            R"({"keys_int8": 4.4E-6, "keys_int4": 0.0007, "values_int8": 0, "values_int4": 3e-4})");
  }
  return text + (layers != 0 ? "]}" : "}");
}

}  // namespace

ORIEL_FUZZ(calibration) {
  const ReadBack whole(data, size, SIZE_MAX);
  const ReadBack bytes(data, size, 1);
  ASSERT_EQ(whole.fault, bytes.fault);
  if (whole.fault == CalibrationFault::kNone) {
    pastFirstCheck();
    expectSound(*whole.file);
    EXPECT_EQ(whole.file->model_hash, bytes.file->model_hash);
    EXPECT_EQ(0, std::memcmp(whole.file->layers, bytes.file->layers, sizeof(whole.file->layers)));
    const json said = json::parse(data, data + size, nullptr, false);
    if (!said.is_discarded() && !hasTwins(data, size)) {
      compare(said, *whole.file);
    }
  }
  const InputPath path("calibration");
  path.write({data, data + size});
  planWith(path.c_str(), whole.fault);
}

// Half of the time only digits change: then it stays JSON, of other numbers.
ORIEL_FUZZ_MUTATE(calibration) {
  Chance chance(seed);
  if (size == 0 || chance.once(2)) {
    return mutateBytes(data, size, max_size, seed);
  }
  for (uint64_t n = 1 + chance.below(8); n != 0; --n) {
    size_t at = chance.below(size);
    while (at < size && (data[at] < '1' || data[at] > '9')) {
      ++at;
    }
    if (at < size) {
      data[at] = static_cast<uint8_t>('1' + chance.below(9));
    }
  }
  return size;
}

ORIEL_FUZZ_SEEDS(calibration) {
  const std::string hash = ModelOnDisk::get().hash();
  seeds->push_back(calibration(hash, 2, ""));
  seeds->push_back(calibration(
      hash, 0, R"(, "notes": [1, -2.5e3, {"a": [true, false, null, "b\"\\"]}, [], {}])"));
  seeds->push_back(calibration(hash, 3, ""));
  seeds->push_back(calibration("00000000000000ff", 2, ""));
  seeds->push_back(calibration(
      hash, 2,
      R"(, "windows": [{"window_tokens": 508, "loss_nats": 0, "shares": [0, 0]}, {"window_tokens": 32,
 "loss_nats": 0.25, "shares": [0, 0]}, {"window_tokens": 254, "loss_nats": -1.5e-3, "shares": [32, 0]}])"));
  for (const size_t layers : {size_t{kMaxLayers}, size_t{kMaxLayers} + 1}) {
    std::string many = R"({"version": 1, "model": null, "constants": {}, "layers": [)";
    for (size_t i = 0; i < layers; ++i) {
      many += i == 0 ? "" : ",";
      many += R"({"keys_int8":0,"keys_int4":1,"values_int8":2,"values_int4":3})";
    }
    seeds->push_back(many + "]}");
  }
  seeds->push_back(R"({"version": 2, "model": null, "constants": {}})");
  seeds->push_back(R"({"version": 1, "model": null, "constants": {"keys_int8": -1}})");
}

}  // namespace oriel_internal::fuzz::fuzz_calibration
