// Numbers in JSON schemas against plain arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "grammar/decimal.h"
#include "support/schema_texts.h"

namespace oriel_internal::test::test_schema_numbers {
namespace {

using nlohmann::json;

Decimal decimal(const std::string& text) {
  Decimal value;
  EXPECT_TRUE(readDecimal({text.data(), text.size()}, &value)) << text;
  return value;
}

TEST(Decimals, are_compared_by_value_however_they_are_written) {
  const std::vector<std::vector<std::string>> ascending = {
      {"-1e20", "-100000000000000000000"},
      {"-12.5", "-1.25e1", "-125e-1", "-12.500"},
      {"-12"},
      {"-0.001", "-1e-3", "-0.1E-2"},
      {"0", "-0", "0.0", "0e5", "-0.00e-7"},
      {"0.001", "1e-3", "10e-4", "0.0010"},
      {"1", "1.0", "1e0", "0.1e1", "10e-1"},
      {"9.99"},
      {"10", "1e1", "1e+1", "1E1"},
      {"9007199254740991"},
      {"9007199254740992", "9007199254740992.0"},
      {"1e50"},
  };
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      for (const std::string& a : ascending[i]) {
        for (const std::string& b : ascending[j]) {
          const int order = compareDecimals(decimal(a), decimal(b));
          EXPECT_EQ(i < j, order < 0) << a << " " << b;
          EXPECT_EQ(i > j, order > 0) << a << " " << b;
        }
      }
    }
  }
  Decimal value;
  const std::string huge = "1e999999999999";
  EXPECT_FALSE(readDecimal({huge.data(), huge.size()}, &value));
}

TEST(SchemaNumbers, integers_have_no_fraction_no_exponent_and_one_spelling) {
  expectTexts(R"({"type": "integer"})",
              {"0", "7", "-1", "123456789", "9007199254740991", "-9007199254740991"},
              {"-0", "01", "+1", "1.0", "1e3", "", "-", "9007199254740992", "-9007199254740992",
               "12345678901234567", "true", "\"1\""});
}

TEST(SchemaNumbers, numbers_may_have_a_fraction_and_a_short_exponent) {
  expectTexts(
      R"({"type": "number"})",
      {"0", "0.0", "-0.5", "3.14", "10000000000.0", "1e5", "2.5E-10", "1e+99", "0.0025", "1e-0",
       "1.5e05", "1e-07", "1234567890.1234567"},
      {"-0", "-0.0", ".5", "5.", "01.5", "1e100", "1e", "NaN", "1234567890.12345678", "0x1"});
}

// Every integer near the bounds, compared.
TEST(SchemaNumbers, bounds_of_integers_are_exact) {
  const std::vector<double> bounds = {-1000, -90, -9.5, -1, -0.5, 0,      0.25,
                                      1,     9,   10,   99, 100,  101.75, 999};
  for (const double low : bounds) {
    for (const double high : bounds) {
      for (int exclusive = 0; exclusive < 4; ++exclusive) {
        const bool above = (exclusive & 1) != 0;
        const bool below = (exclusive & 2) != 0;
        const json schema = {{"type", "integer"},
                             {above ? "exclusiveMinimum" : "minimum", low},
                             {below ? "exclusiveMaximum" : "maximum", high}};
        const SchemaTexts texts(schema.dump());
        int n = 0;
        for (int x = -1100; x <= 1100; x += x > -120 && x < 120 ? 1 : 7) {
          const bool fits = (above ? x > low : x >= low) && (below ? x < high : x <= high);
          n += fits ? 1 : 0;
          ASSERT_EQ(fits, texts.accepts(std::to_string(x))) << schema << " " << x;
        }
        EXPECT_TRUE(texts.ok() || n == 0) << schema << " " << texts.errors();
      }
    }
  }
}

// Every number of up to two places near the bounds, in each of its spellings.
TEST(SchemaNumbers, bounds_of_numbers_are_exact) {
  const std::vector<double> bounds = {-19.99, -2, -0.5, -0.01, 0, 0.05, 0.5, 1, 2.25, 19.99, 20};
  for (const double low : bounds) {
    for (const double high : bounds) {
      if (high < low) {
        continue;
      }
      for (const bool exclusive : {false, true}) {
        const json schema = {{"type", "number"},
                             {exclusive ? "exclusiveMinimum" : "minimum", low},
                             {exclusive ? "exclusiveMaximum" : "maximum", high}};
        const SchemaTexts texts(schema.dump());
        for (int hundredths = -2105; hundredths <= 2105; hundredths += 5) {
          for (const int x : {hundredths, hundredths + 1, hundredths - 1}) {
            const double value = x / 100.0;
            const bool fits =
                exclusive ? value > low && value < high : value >= low && value <= high;
            char spelled[32];
            std::snprintf(spelled, sizeof(spelled), "%.2f", value);
            ASSERT_EQ(fits && x != 0, texts.accepts(spelled) && x != 0) << schema << " " << spelled;
            std::snprintf(spelled, sizeof(spelled), "%.4f", value);
            ASSERT_EQ(fits && x != 0, texts.accepts(spelled) && x != 0) << schema << " " << spelled;
            if (x % 100 == 0) {
              ASSERT_EQ(fits, texts.accepts(std::to_string(x / 100))) << schema << " " << x;
            }
          }
        }
      }
    }
  }
}

TEST(SchemaNumbers, bounds_may_be_large_or_written_with_exponents) {
  expectTexts(R"({"type": "integer", "minimum": 1e3, "maximum": 2.5e3})", {"1000", "2500", "1999"},
              {"999", "2501", "10000", "100"});
  expectTexts(R"({"type": "integer", "exclusiveMinimum": 9007199254740989})",
              {"9007199254740990", "9007199254740991"},
              {"9007199254740989", "1", "90071992547409900"});
  expectTexts(R"({"type": "integer", "minimum": -1e300, "maximum": -123456789012})",
              {"-123456789012", "-9007199254740991"}, {"-123456789011", "0", "123456789013"});
  expectTexts(R"({"type": "number", "exclusiveMinimum": 0.01, "maximum": 19.99})",
              {"0.011", "0.0100001", "19.99", "19.9900", "5"},
              {"0.01", "0.0100", "19.991", "0", "20"});
  expectTexts(R"({"type": "number", "minimum": 0.5, "maximum": 0.5})", {"0.5", "0.50"},
              {"0.51", "0.49", "0", "5e-1"});
  expectTexts(R"({"type": "integer", "minimum": 1e30})", {"1000000000000000000000000000000"},
              {"999999999999999999999999999999", "1e30"});
  expectTexts(
      R"({"type": "integer", "minimum": 9007199254740993, "maximum": 18446744073709551615})",
      {"9007199254740993", "9223372036854775807", "18446744073709551615"},
      {"9007199254740992", "18446744073709551616"});
  // As doubles, the next whole numbers are the bound.
  expectTexts(R"({"type": "integer", "exclusiveMinimum": 9007199254740992})",
              {"9007199254740999000"}, {"9007199254740993"});
  expectRefused(R"({"type": "integer", "minimum": 0.2, "maximum": 0.8})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
  expectRefused(R"({"type": "number", "minimum": 1e9999999})", ORIEL_ERROR_ARGUMENT,
                "nothing is valid");
  expectRefused(R"({"type": "number", "minimum": 1e-9999999})", ORIEL_ERROR_UNSUPPORTED,
                "\"minimum\"");
}

TEST(SchemaNumbers, multiples_of_integers_are_exact) {
  for (const int step : {1, 2, 3, 5, 7, 10, 12, 25, 60, 97, 100, 360, 1000}) {
    const json schema = {{"type", "integer"}, {"multipleOf", step}, {"minimum", -500}};
    const SchemaTexts texts(schema.dump());
    ASSERT_TRUE(texts.ok()) << texts.errors();
    for (int x = -2100; x <= 2100; ++x) {
      ASSERT_EQ(x >= -500 && x % step == 0, texts.accepts(std::to_string(x))) << step << " " << x;
    }
  }
  expectTexts(R"({"type": "number", "multipleOf": 10})", {"0", "10", "-200"}, {"5", "10.0", "1e1"});
  expectTexts(R"({"allOf": [{"multipleOf": 2}, {"multipleOf": 3}], "type": "integer"})",
              {"0", "6", "-12"}, {"2", "3", "4", "9"});
  expectTexts(R"({"type": "integer", "multipleOf": 2.5})", {"0", "5", "-10"}, {"2", "4", "7"});
}

// Validators divide doubles, so for them 19.99 is not a multiple of 0.01. Written numbers must be multiples both ways.
TEST(SchemaNumbers, multiples_of_fractions_hold_in_floating_point_too) {
  const struct {
    const char* step;
    double value;
    int places;
  } kSteps[] = {{"0.01", 0.01, 2}, {"0.1", 0.1, 1},   {"0.5", 0.5, 1},     {"0.05", 0.05, 2},
                {"1.5", 1.5, 1},   {"0.25", 0.25, 2}, {"0.001", 0.001, 3}, {"0.2", 0.2, 1}};
  for (const auto& step : kSteps) {
    const SchemaTexts texts(std::string("{\"type\": \"number\", \"multipleOf\": ") + step.step +
                            "}");
    ASSERT_TRUE(texts.ok()) << texts.errors();
    const int scale = static_cast<int>(std::lround(std::pow(10, step.places)));
    const int exact = static_cast<int>(std::lround(step.value * scale));
    int n = 0;
    for (int x = -2000; x <= 2000; ++x) {
      char spelled[32];
      std::snprintf(spelled, sizeof(spelled), "%.*f", step.places, static_cast<double>(x) / scale);
      const double quotient = std::strtod(spelled, nullptr) / step.value;
      const bool divides = quotient == std::floor(quotient);
      const bool accepted = texts.accepts(spelled);
      n += accepted ? 1 : 0;
      EXPECT_FALSE(accepted && (!divides || x % exact != 0)) << step.step << " " << spelled;
      if (x != 0) {
        EXPECT_EQ(divides && x % exact == 0, accepted) << step.step << " " << spelled;
      }
    }
    EXPECT_GT(n, 100) << step.step;
    for (const std::string& text : texts.make(300)) {
      const double quotient = std::strtod(text.c_str(), nullptr) / step.value;
      EXPECT_EQ(quotient, std::floor(quotient)) << step.step << " " << text;
    }
  }
}

TEST(SchemaNumbers, steps_that_are_too_fine_are_refused_by_name) {
  expectRefused(R"({"type": "number", "multipleOf": 0.123456789})", ORIEL_ERROR_UNSUPPORTED,
                "multipleOf");
  expectRefused(R"({"type": "integer", "multipleOf": 123457})", ORIEL_ERROR_UNSUPPORTED,
                "multipleOf");
  expectRefused(R"({"type": "integer", "multipleOf": 0})", ORIEL_ERROR_ARGUMENT, "multipleOf");
  expectRefused(R"({"type": "integer", "multipleOf": -2})", ORIEL_ERROR_ARGUMENT, "multipleOf");
}

}  // namespace
}  // namespace oriel_internal::test::test_schema_numbers
