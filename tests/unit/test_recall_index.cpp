// Finding turns by their words.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "base/half.h"
#include "budget/budget.h"
#include "exec/recall_file.h"
#include "kv/quantise.h"
#include "kv/recall_index.h"
#include "plan/weight_placement.h"
#include "support/captured_log.h"
#include "support/gguf_writer.h"
#include "text/normalise.h"

namespace oriel_internal::test_recall_index {
namespace {

std::vector<uint32_t> words(const std::string& text, size_t piece = SIZE_MAX) {
  std::vector<uint32_t> found;
  WordReader reader;
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at)) {
    reader.push(text.data() + at, std::min(piece, text.size() - at),
                [&](uint32_t word) { found.push_back(word); });
  }
  if (const uint32_t last = reader.finish(); last != WordReader::kNone) {
    found.push_back(last);
  }
  return found;
}

/// A conversation whose words are its tokens.
class Said {
 public:
  explicit Said(uint64_t capacity) : block_(1u << 20) {
    Arena arena(block_.data(), block_.size());
    index.init(capacity, /*pictures=*/true, &arena);
  }
  TokenSpan turn(const std::string& text) {
    const TokenSpan span = {at_, at_ + words(text).size()};
    index.markTurn(at_);
    more(text);
    return span;
  }
  void more(const std::string& text) {
    for (const uint32_t word : words(text)) {
      index.addWord(at_++, word);
    }
  }
  void picture(uint64_t rows) {
    for (uint32_t row = 0; row < rows; ++row) {
      index.addRow(at_++, row);
    }
  }
  RecallSpans find(const std::string& text, uint64_t begin, uint64_t end, uint32_t room) {
    RecallQuery query;
    for (const uint32_t word : words(text)) {
      query.add(word);
    }
    index.weigh(query, begin, end, room);
    return index.best(room);
  }
  uint64_t end() const { return at_; }

  RecallIndex index;

 private:
  struct alignas(Arena::kAlignment) Aligned {
    uint8_t bytes[Arena::kAlignment];
  };
  class Block {
   public:
    explicit Block(size_t bytes) : pieces_(bytes / sizeof(Aligned)) {}
    void* data() { return pieces_.data(); }
    size_t size() const { return pieces_.size() * sizeof(Aligned); }

   private:
    std::vector<Aligned> pieces_;
  };
  Block block_;
  uint64_t at_ = 0;
};

}  // namespace

TEST(Words, are_the_same_in_any_case_and_with_most_endings) {
  EXPECT_EQ(words("dog"), words("DOGS"));
  EXPECT_EQ(words("teacher"), words("Teaching"));
  EXPECT_EQ(words("\xC3\x84pfel"), words("\xC3\xA4pfel"));  // A and a with dots
  EXPECT_EQ(words("\xD0\x9C\xD0\xB8\xD1\x80"), words("\xD0\xBC\xD0\xB8\xD1\x80"));  // Mir, mir
  EXPECT_NE(words("cat"), words("car"));
  EXPECT_EQ(3u, words("B1-810 x 7").size()) << "a letter alone is no word, a digit is";
  EXPECT_TRUE(words(" .,!? ").empty());
}

TEST(Words, of_scripts_without_case_are_pairs_of_letters) {
  const std::string text = "\xE6\x88\x91\xE7\x9A\x84\xE7\x8B\x97";  // three Han characters
  EXPECT_EQ(2u, words(text).size());
  EXPECT_EQ(words(text).back(), words(text.substr(3)).back());
}

TEST(Words, do_not_depend_on_how_the_text_comes) {
  const std::string text =
      "Na\xC3\xAFve caf\xC3\xA9s, 2024: \xE6\x88\x91\xE7\x9A\x84 ok\xFF\xC3 end";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EXPECT_EQ(words(text), words(text, piece)) << piece;
  }
}

TEST(RecallIndex, finds_the_turn_with_the_rarest_words_in_common) {
  Said said(4096);
  std::vector<TokenSpan> turns;
  for (int i = 0; i < 40; ++i) {
    turns.push_back(said.turn("what is the name of the day number " + std::to_string(i)));
  }
  const TokenSpan pet = said.turn("the name of my parrot is Polly");
  said.turn("what is the day today");
  const RecallSpans found = said.find("What is my parrot called?", 0, said.end(), 16);
  ASSERT_NE(0u, found.count);
  EXPECT_TRUE(found.spans[0] == pet);
  const RecallSpans day = said.find("day number 17", 0, said.end(), 9);
  ASSERT_EQ(1u, day.count);
  EXPECT_TRUE(day.spans[0] == turns[17]);
  EXPECT_EQ(0u, said.find("xylophones", 0, said.end(), 16).count);
  EXPECT_EQ(0u, said.find("parrot", 0, pet.begin, 16).count) << "behind what may come back";
}

TEST(RecallIndex, attention_counts_beside_words) {
  Said said(4096);
  for (int i = 0; i < 30; ++i) {
    said.turn("nothing new was said on day " + std::to_string(i));
  }
  ASSERT_EQ(0u, said.find("elephant", 0, said.end(), 16).count);
  RecallQuery query;
  said.index.weigh(query, 0, said.end(), 16);
  ASSERT_EQ(30u, said.index.passageCount());
  for (uint32_t i = 0; i < 30; ++i) {
    said.index.setAttention(i, i == 11 ? 0.5f : 0.01f);
  }
  const RecallSpans found = said.index.best(16);
  ASSERT_EQ(1u, found.count);
  EXPECT_TRUE(found.spans[0] == said.index.passage(11));
}

TEST(RecallIndex, cuts_what_is_too_long_and_takes_what_there_is_room_for) {
  Said said(4096);
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += i == 150 ? "pelican " : "word" + std::to_string(i) + " ";
  }
  said.turn(text);
  const RecallSpans found = said.find("pelican", 0, said.end(), 100);
  ASSERT_EQ(1u, found.count);
  EXPECT_LE(found.spans[0].size(), RecallIndex::kPieceTokens);
  EXPECT_LE(found.spans[0].begin, 150u);
  EXPECT_GT(found.spans[0].end, 150u);
  EXPECT_EQ(0u, said.find("pelican", 0, said.end(), 0).count);
  for (uint32_t room = 1; room < 80; ++room) {
    EXPECT_LE(said.find("pelican word7 word99", 0, said.end(), room).tokens(), room);
  }
}

TEST(RecallIndex, never_divides_a_picture) {
  constexpr uint64_t kRows = 90;
  Said said(4096);
  std::string text;
  for (int i = 0; i < 70; ++i) {
    text += "word" + std::to_string(i) + " ";
  }
  said.turn(text);
  const uint64_t begin = said.end();
  said.picture(kRows);
  const TokenSpan picture = {begin, said.end()};
  said.more("pelican " + text);
  const auto divides = [&](const TokenSpan& span) {
    const bool begins = span.begin > picture.begin && span.begin < picture.end;
    const bool ends = span.end > picture.begin && span.end < picture.end;
    return begins || ends;
  };
  for (const uint64_t from : {uint64_t{0}, begin + 1, begin + kRows - 1, begin + kRows}) {
    for (const uint64_t to : {begin + 1, begin + kRows - 1, begin + kRows, said.end()}) {
      for (const uint32_t room : {1u, 64u, 89u, 90u, 120u, 160u, 400u}) {
        const RecallSpans found = said.find("pelican word3", from, to, room);
        for (uint32_t i = 0; i < said.index.passageCount(); ++i) {
          const TokenSpan& passage = said.index.passage(i);
          EXPECT_FALSE(divides(passage)) << passage.begin << " to " << passage.end;
          EXPECT_TRUE(i == 0 || passage.begin == said.index.passage(i - 1).end);
        }
        EXPECT_LE(found.tokens(), room);
      }
    }
  }
  // A picture brings the text after it.
  const RecallSpans found = said.find("pelican", 0, said.end(), 120);
  ASSERT_NE(0u, found.count);
  EXPECT_EQ(picture.begin, found.spans[found.count - 1].begin);
  EXPECT_GT(found.spans[found.count - 1].end, picture.end);
  // Tiles have tokens between them.
  said.index.addRow(picture.end + 2, kRows);
  EXPECT_EQ(1u, said.find("pelican", picture.begin, picture.end + 7, 400).count);
  EXPECT_EQ(0u, said.find("pelican", picture.begin, picture.end + 6, 400).count)
      << "another tile may follow";
  said.find("pelican", picture.begin + 1, picture.end + 7, 400);
  ASSERT_EQ(1u, said.index.passageCount());
  EXPECT_EQ(picture.end + 3, said.index.passage(0).begin);
}

TEST(RecallIndex, keeps_the_latest_words_and_forgets_what_was_taken_back) {
  Said said(20);
  for (int i = 0; i < 10; ++i) {
    said.turn("filler talk number " + std::to_string(i));
  }
  EXPECT_EQ(20u, said.index.wordCount());
  EXPECT_EQ(0u, said.find("0", 0, said.end(), 8).count);
  EXPECT_EQ(1u, said.find("number 8", 0, said.end(), 4).count);
  said.index.truncate(said.end() - 8, said.end() - 8);
  EXPECT_EQ(12u, said.index.wordCount());
  EXPECT_EQ(0u, said.find("8", 0, said.end() - 8, 8).count);
  said.index.clear();
  EXPECT_EQ(0u, said.find("number 7", 0, said.end(), 8).count);
}

}  // namespace oriel_internal::test_recall_index

namespace oriel_internal::test_recall_keys {

// Keys stored a second time, in 8 bits.

namespace {

struct Rounded {
  float scale = 0;
  std::vector<int> codes;
};

Rounded rounded(const std::vector<float>& values, bool says = true) {
  std::vector<uint8_t> key(sizeof(float) + values.size());
  roundKey(values.data(), static_cast<uint32_t>(values.size()), says, key.data());
  Rounded read;
  std::memcpy(&read.scale, key.data(), sizeof(float));
  for (size_t i = sizeof(float); i < key.size(); ++i) {
    read.codes.push_back(static_cast<int8_t>(key[i]));
  }
  return read;
}

TEST(RecallKeys, the_largest_value_is_127_scales) {
  const Rounded key = rounded({0.5f, -2.0f, 1.0f, 0});
  EXPECT_EQ(2.0f / 127, key.scale);
  EXPECT_EQ((std::vector<int>{32, -127, 64, 0}), key.codes);
  EXPECT_EQ(0, rounded({0, 0}).scale);
  EXPECT_EQ((std::vector<int>{0, 0}), rounded({0, 0}).codes);
  EXPECT_EQ(-1, rounded({0.5f, -2.0f}, /*says=*/false).scale);
}

TEST(RecallKeys, what_is_not_finite_says_nothing) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan, -nan}) {
    for (size_t at = 0; at < 3; ++at) {
      std::vector<float> values = {1, -2, 3};
      values[at] = bad;
      const Rounded key = rounded(values);
      EXPECT_EQ(-1, key.scale) << bad << " at " << at;
      EXPECT_EQ((std::vector<int>{0, 0, 0}), key.codes) << bad << " at " << at;
    }
  }
}

// A scale of so few bits is rounded by up to a half.
TEST(RecallKeys, denormal_keys_stay_within_127) {
  const float least = std::numeric_limits<float>::denorm_min();
  for (int n = 1; n < 2000; ++n) {
    const float value = static_cast<float>(n) * least;
    for (const int code : rounded({value, -value}).codes) {
      EXPECT_LE(std::abs(code), 127) << n;
    }
  }
  EXPECT_EQ((std::vector<int>{127, -127}),
            rounded({std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}).codes);
}

// The token's readable heads count.
TEST(RecallKeys, a_head_that_says_nothing_leaves_the_others) {
  RecallLayer layer;
  layer.n_heads = layer.n_kv_heads = 2;
  layer.head_dim = 4;
  layer.scale = 1;
  const std::vector<float> queries(8, 1.0f);
  std::vector<uint8_t> keys(2 * (sizeof(float) + 4));
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), 0, 0, 0};
  const float good[] = {1, 0, 0, 0};
  roundKey(bad, 4, true, keys.data());
  roundKey(good, 4, true, keys.data() + sizeof(float) + 4);
  double sums[2] = {};
  RecallScorer(layer, queries.data(), 1).add(keys.data(), sums);
  EXPECT_EQ(0, sums[0]);
  EXPECT_NEAR(std::exp(1.0), sums[1], 1e-5);
}

}  // namespace
}  // namespace oriel_internal::test_recall_keys

namespace oriel_internal::test::test_key_guard {

// Key biases and key norms for which a guard avoids low-bit formats: its thresholds, and that rounding starts to matter
// there, measured with the cache's formats.

namespace {

/// A file with only the guard's inputs, and its model.
class GuardedModel {
 public:
  explicit GuardedModel(uint32_t head_dim, uint32_t n_kv_heads = 2) {
    model_.n_layers = 1;
    model_.n_heads = model_.n_kv_heads = n_kv_heads;
    model_.head_dim = head_dim;
    makeLayersAlike(&model_);
  }
  LayerKind& kind() { return model_.kinds[0]; }

  void add(TensorRole role, const std::string& name, const std::vector<float>& values,
           TensorType type = TensorType::kF32) {
    const size_t size = type == TensorType::kF32 ? 4 : 2;
    std::vector<uint8_t> data(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t half = floatToHalf(values[i]);
      if (type == TensorType::kBf16) {
        uint32_t bits;
        std::memcpy(&bits, &values[i], 4);
        half = static_cast<uint16_t>(bits >> 16);
      }
      std::memcpy(data.data() + i * size, size == 4 ? static_cast<const void*>(&values[i]) : &half,
                  size);
    }
    writer_.addTensor("blk.0." + name, static_cast<uint32_t>(type), {values.size()}, data);
    roles_.emplace_back(role, "blk.0." + name);
  }

  /// The format of keys when `wanted` is requested.
  KvFormat keys(KvFormat wanted) { return formats(wanted).keys(0); }
  CacheFormats formats(KvFormat wanted) {
    const std::vector<uint8_t> bytes = writer_.build();
    CapturedLog log;
    GgufFile file;
    EXPECT_TRUE(file.open(bytes.data(), bytes.size(), log.log()).ok()) << log.errors();
    TensorIndex tensors;
    EXPECT_TRUE(tensors.create(roles_.size(), 1, defaultAllocator(), log.log()).ok());
    for (const auto& [role, name] : roles_) {
      GgufTensor tensor;
      EXPECT_TRUE(file.findTensor(name.c_str(), &tensor));
      tensors.add(role, 0, tensor);
    }
    CacheFormats formats;
    formats.k = formats.v = wanted;
    EXPECT_TRUE(guardKeys(file, tensors, model_, log.log(), &formats).ok()) << log.errors();
    return formats;
  }

 private:
  ModelDesc model_;
  GgufWriter writer_;
  std::vector<std::pair<TensorRole, std::string>> roles_;
};

std::vector<double> direction(uint32_t head_dim, std::mt19937* random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(head_dim);
  double square = 0;
  for (double& value : values) {
    value = normal(*random);
    square += value * value;
  }
  for (double& value : values) {
    value /= std::sqrt(square);
  }
  return values;
}

std::vector<float> times(const std::vector<double>& values, double factor) {
  std::vector<float> out;
  for (const double value : values) {
    out.push_back(static_cast<float>(value * factor));
  }
  return out;
}

/// The format of keys whose bias has this norm in the second of two heads, and is small in the first.
KvFormat keysOfBias(KvFormat wanted, uint32_t head_dim, double norm) {
  GuardedModel file(head_dim);
  std::mt19937 random(1);
  std::vector<float> bias = times(direction(head_dim, &random), 0.5);
  const std::vector<float> second = times(direction(head_dim, &random), norm);
  bias.insert(bias.end(), second.begin(), second.end());
  file.add(TensorRole::kKeyBias, "attn_k.bias", bias);
  return file.keys(wanted);
}

/// The same of keys and queries whose root mean squares are `key` and `query`.
CacheFormats formatsOfNorms(KvFormat wanted, uint32_t head_dim, double key, double query,
                            double scale = 0) {
  GuardedModel file(head_dim);
  if (scale != 0) {
    file.kind().attention_scale = static_cast<float>(scale);
  }
  std::mt19937 random(1);
  const double root = std::sqrt(static_cast<double>(head_dim));
  file.add(TensorRole::kKeyNorm, "attn_k_norm.weight",
           times(direction(head_dim, &random), key * root));
  file.add(TensorRole::kQueryNorm, "attn_q_norm.weight",
           times(direction(head_dim, &random), query * root));
  return file.formats(wanted);
}

/// Largest x for which raised(x) is false.
template <typename Raised>
double limitOf(const Raised& raised) {
  double low = 1e-3, high = 1e6;
  EXPECT_FALSE(raised(low));
  EXPECT_TRUE(raised(high));
  while (high / low > 1 + 1e-7) {
    const double middle = std::sqrt(low * high);
    (raised(middle) ? high : low) = middle;
  }
  return low;
}

/// Root mean square of the change in values when a key is stored in `format`, for keys of this length in random
/// directions, each with its own `noise`.
double roundingOf(KvFormat format, uint32_t head_dim, double length, double noise) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, noise);
  double square = 0;
  constexpr uint32_t kKeys = 400;
  for (uint32_t key = 0; key < kKeys; ++key) {
    std::vector<float> values = times(direction(head_dim, &random), length);
    for (float& value : values) {
      value += static_cast<float>(normal(random));
    }
    hadamard(values.data(), head_dim, hadamardBlock(head_dim));
    for (uint32_t first = 0; first < head_dim; first += kKvGroup) {
      uint8_t codes[kKvGroup];
      const double scale = static_cast<double>(
          halfToFloat(quantiseGroup(format, values.data() + first, kKvGroup, codes)));
      for (uint32_t i = 0; i < kKvGroup; ++i) {
        const double error = static_cast<double>(values[first + i]) -
                             scale * static_cast<double>(kvCodeValue(format, codes[i]));
        square += error * error;
      }
    }
  }
  return std::sqrt(square / (kKeys * head_dim));
}

TEST(KeyGuard, biases_are_kept_out_of_few_bits_from_the_documented_norms_on) {
  for (const uint32_t head_dim : {32u, 64u, 128u, 256u}) {
    SCOPED_TRACE(head_dim);
    const double per_dim = std::sqrt(head_dim / 64.0);
    for (const double part : {.01, .25, .5, .9, .999}) {
      EXPECT_EQ(KvFormat::kInt4, keysOfBias(KvFormat::kInt4, head_dim, 12 * per_dim * part))
          << part;
      EXPECT_EQ(KvFormat::kInt8, keysOfBias(KvFormat::kInt8, head_dim, 60 * per_dim * part))
          << part;
    }
    for (const double times_limit : {1.001, 1.1, 2., 4., 4.9}) {
      EXPECT_EQ(KvFormat::kInt8, keysOfBias(KvFormat::kInt4, head_dim, 12 * per_dim * times_limit))
          << times_limit;
    }
    for (const double times_limit : {1.001, 1.1, 2., 4., 16., 1000.}) {
      EXPECT_EQ(KvFormat::kF16, keysOfBias(KvFormat::kInt4, head_dim, 60 * per_dim * times_limit))
          << times_limit;
      EXPECT_EQ(KvFormat::kF16, keysOfBias(KvFormat::kInt8, head_dim, 60 * per_dim * times_limit))
          << times_limit;
    }
    EXPECT_EQ(KvFormat::kF16, keysOfBias(KvFormat::kF16, head_dim, 1e4));
  }
}

// A score is the sum of head_dim products over the root of head_dim. Per unit of a query's values, rounding
// therefore changes it by the root mean square of the key's change.
TEST(KeyGuard, the_largest_biases_that_few_bits_may_hold_move_scores_by_little) {
  const struct {
    KvFormat format;
    double most;
  } formats[] = {{KvFormat::kInt8, .05}, {KvFormat::kInt4, .15}};
  for (const auto& f : formats) {
    for (const uint32_t head_dim : {64u, 128u}) {
      SCOPED_TRACE(std::string(kvFormatName(f.format)) + ", head_dim " + std::to_string(head_dim));
      const double norm =
          limitOf([&](double x) { return keysOfBias(f.format, head_dim, x) != f.format; });
      const double moved = roundingOf(f.format, head_dim, norm, 1.0);
      EXPECT_LE(moved, f.most);
      EXPECT_GE(moved, f.most / 2) << "the guard costs bits where nothing is at stake";
    }
  }
}

TEST(KeyGuard, the_worst_head_counts_whatever_the_type_of_the_tensor) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBf16}) {
    for (uint32_t worst = 0; worst < 4; ++worst) {
      for (const double norm : {11.8, 12.2}) {
        GuardedModel file(64, 4);
        std::mt19937 random(3);
        std::vector<float> bias;
        for (uint32_t head = 0; head < 4; ++head) {
          const std::vector<float> values = times(direction(64, &random), head == worst ? norm : 5);
          bias.insert(bias.end(), values.begin(), values.end());
        }
        file.add(TensorRole::kKeyBias, "attn_k.bias", bias, type);
        EXPECT_EQ(norm < 12 ? KvFormat::kInt4 : KvFormat::kInt8, file.keys(KvFormat::kInt4));
      }
    }
  }
}

TEST(KeyGuard, values_keep_eight_bits_where_keys_need_sixteen) {
  GuardedModel file(64, 1);
  std::mt19937 random(3);
  file.add(TensorRole::kKeyBias, "attn_k.bias", times(direction(64, &random), 61));
  const CacheFormats formats = file.formats(KvFormat::kInt4);
  EXPECT_EQ(KvFormat::kF16, formats.keys(0));
  EXPECT_EQ(KvFormat::kInt8, formats.values(0));
  EXPECT_TRUE(formats.keysRaised(0));
  EXPECT_FALSE(formats.raisedByNorm(0));
}

// A score may change by at most .4 nats, standard deviation; computed as for biases.
TEST(KeyGuard, norms_are_kept_out_of_few_bits_from_the_documented_lengths_on) {
  const double int8 = .4 / (2.5 / (127 * std::sqrt(12.0)));
  const double int4 = .4 / (2.5 / (8 * std::sqrt(12.0)));
  for (const uint32_t head_dim : {64u, 128u, 256u}) {
    SCOPED_TRACE(head_dim);
    for (const double query : {.5, 1., 4.}) {
      const auto keys = [&](KvFormat wanted, double product) {
        return formatsOfNorms(wanted, head_dim, product / query, query).keys(0);
      };
      for (const double part : {.01, .25, .5, .9, .999}) {
        EXPECT_EQ(KvFormat::kInt4, keys(KvFormat::kInt4, int4 * part)) << part;
        EXPECT_EQ(KvFormat::kInt8, keys(KvFormat::kInt8, int8 * part)) << part;
      }
      for (const double times_limit : {1.001, 1.1, 2., 4., 10.}) {
        EXPECT_EQ(KvFormat::kInt8, keys(KvFormat::kInt4, int4 * times_limit)) << times_limit;
        EXPECT_EQ(KvFormat::kF16, keys(KvFormat::kInt8, int8 * times_limit)) << times_limit;
        EXPECT_EQ(KvFormat::kF16, keys(KvFormat::kInt4, int8 * times_limit)) << times_limit;
      }
    }
    EXPECT_TRUE(formatsOfNorms(KvFormat::kInt4, head_dim, int4 * 1.1, 1).raisedByNorm(0));
    EXPECT_FALSE(formatsOfNorms(KvFormat::kInt4, head_dim, int4 * .9, 1).raisedByNorm(0));
    // Scores that are scaled twice as much move twice as far.
    const double scale = 2 / std::sqrt(static_cast<double>(head_dim));
    EXPECT_EQ(KvFormat::kInt4,
              formatsOfNorms(KvFormat::kInt4, head_dim, int4 * .499, 1, scale).keys(0));
    EXPECT_EQ(KvFormat::kInt8,
              formatsOfNorms(KvFormat::kInt4, head_dim, int4 * .501, 1, scale).keys(0));
  }
}

TEST(KeyGuard, the_widest_norms_that_few_bits_may_hold_move_scores_by_little) {
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    for (const uint32_t head_dim : {64u, 128u}) {
      SCOPED_TRACE(std::string(kvFormatName(format)) + ", head_dim " + std::to_string(head_dim));
      constexpr double kQuery = 1.5;
      const double key = limitOf(
          [&](double x) { return formatsOfNorms(format, head_dim, x, kQuery).keys(0) != format; });
      // A score is query * key / sqrt(head_dim): head_dim products, each moved by the query's value times this.
      const double moved =
          kQuery * roundingOf(format, head_dim, key * std::sqrt(static_cast<double>(head_dim)), 0);
      EXPECT_LE(moved, .4);
      EXPECT_GE(moved, .2) << "the guard costs bits where nothing is at stake";
    }
  }
}

// ---- The budgeter's limit ------------------------------------------------------------------------

// Formats with rounding above the limit are weighed, but not chosen; below it they are.
TEST(KeyGuard, formats_are_refused_from_a_tenth_of_a_nat_of_rounding_on) {
  ModelDesc model;
  model.n_layers = 2;
  model.n_heads = 4;
  model.n_kv_heads = 2;
  model.head_dim = model.ropes[kMainRope].dims = 64;
  model.n_embd = 256;
  model.n_ff = 512;
  model.n_vocab = 1000;
  model.context_train = 65536;
  makeLayersAlike(&model);
  PlanTotals totals;
  totals.weights_bytes = 1 << 20;
  totals.upload_half_bytes = 65536;
  const auto refused = [&](double keys, double values, bool fixed = false) {
    BudgetRequest request;
    request.memory_bytes = 8u << 20;
    request.formats.k = request.formats.v = KvFormat::kInt4;
    request.fixed_k = request.fixed_v = fixed;
    request.loss.keys_int4 = keys;
    request.loss.values_int4 = values;
    Budget budget;
    EXPECT_TRUE(chooseBudget(model, totals, request, Log(), &budget).ok());
    EXPECT_EQ(KvFormat::kInt4, budget.choices[0].formats.k);
    EXPECT_EQ(KvFormat::kInt4, budget.choices[0].formats.v);
    return budget.choices[0].refused == Refusal::kQuality;
  };
  for (const double keys : {.001, .03, .06, .0599}) {
    EXPECT_FALSE(refused(keys, .0999 - keys)) << keys;
    EXPECT_TRUE(refused(keys, .1001 - keys)) << keys;
  }
  for (const double far : {.11, .2, .4, 1.}) {
    EXPECT_TRUE(refused(far, 0)) << far;
    EXPECT_TRUE(refused(0, far)) << far;
    EXPECT_FALSE(refused(far, far, true)) << "asked for";
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_key_guard
