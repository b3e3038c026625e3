// Separation of thought, answer and call in the reply reader.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/reply.h"

namespace oriel_internal::test::test_reply_reader {
namespace {

using nlohmann::json;

constexpr char kCall[] = R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)";

void expectText(ReplyForms forms, const std::string& text) {
  const ReadReply read = readReply(forms, text);
  EXPECT_EQ(text, read.text);
  EXPECT_EQ("", read.thought);
  EXPECT_TRUE(read.calls.empty()) << text;
}

void expectCall(ReplyForms forms, const std::string& reply, const std::string& name,
                const std::string& arguments, const Tools* tools = nullptr) {
  const ReadReply read = readReply(forms, reply, tools);
  ASSERT_EQ(1u, read.calls.size()) << reply;
  EXPECT_EQ("", read.text) << reply;
  EXPECT_EQ(name, read.calls[0].name);
  EXPECT_EQ(arguments, read.calls[0].arguments) << reply;
  EXPECT_TRUE(read.calls[0].ended) << reply;
}

/// A tool `f` with these properties.
json tool(const json& properties) {
  return json::array(
      {{{"type", "function"},
        {"function",
         {{"name", "f"}, {"parameters", {{"type", "object"}, {"properties", properties}}}}}}});
}

TEST(ReplyReader, an_answer_is_shown_as_it_stands) {
  for (const char* const text :
       {"", " ", "Hello.", "  Two spaces, and a line end\n", "a < b, [1], {x}", "日本 🙂",
        "{\"city\": \"Lisbon\"}", "[1, 2]", "[link](https://example.org)", "[name", "{",
        "{\"name\": \"x\"}", "{\"name\": \"x\", \"age\": 3}", "```json\n{\"a\": 1}\n```",
        "[battery](x) is a link"}) {
    expectText(formsOfAnything(), text);
  }
}

TEST(ReplyReader, what_only_begins_like_a_mark_is_text) {
  for (const char* const text :
       {"<tool", "<tool_cal!", "<tool_calling>", "<<tool_call", "functools", "functools(x)",
        "[TOOL_CALLS", "a <tool_call> is a tag", "<tool_call>", "<tool_call>\n", "<tool_call>{",
        "<tool_call>{\"x\": 1}</tool_call>", "<tool_call></tool_call>", "<|tool_call", "<functio",
        "Write <function= to begin", "functools[1]", "<thin", "In HTML <think> is no tag"}) {
    expectText(formsOfAnything(), text);
  }
}

TEST(ReplyReader, text_is_shown_as_soon_as_it_cannot_be_a_mark) {
  ReplyReader reader;
  ReadReply read;
  ReplySettings settings;
  settings.forms = kFormToolCall;
  reader.start(settings, addPart, &read);
  const auto push = [&](const std::string& text) { reader.push(text.data(), text.size()); };
  push("x <tool");
  EXPECT_EQ("x ", read.text);
  push("box");
  EXPECT_EQ("x <toolbox", read.text);
  push("<tool_call>{\"name\": \"f\", \"arg");
  EXPECT_TRUE(read.calls.empty());
  push("uments\": {\"a\": \"b");
  ASSERT_EQ(1u, read.calls.size());
  EXPECT_EQ("{\"a\":\"b", read.calls[0].arguments);
  push("c\"}}");
  EXPECT_TRUE(read.calls[0].ended);
}

TEST(ReplyReader, thoughts_lose_the_white_space_around_them) {
  const ReadReply read = readReply(ReplyForms{0}, "\n<think>\n a\n\nb \n</think>\n\nAnswer \n");
  EXPECT_EQ("a\n\nb", read.thought);
  EXPECT_EQ("Answer \n", read.text);
  EXPECT_EQ("Answer", readReply(ReplyForms{0}, "<think>\n\n</think>\n\nAnswer").text);
  EXPECT_EQ("cut", readReply(ReplyForms{0}, "<think>cut ").thought);
  EXPECT_EQ("cut </thin", readReply(ReplyForms{0}, "<think>cut </thin").thought);
}

TEST(ReplyReader, a_thought_that_the_template_opened) {
  ReplySettings settings;
  settings.inside_thought = true;
  const ReadReply read = readReply(settings, "Hm.\n</think>\nYes.");
  EXPECT_EQ("Hm.", read.thought);
  EXPECT_EQ("Yes.", read.text);
  EXPECT_EQ("Hm.", readReply(settings, "Hm.").thought);
}

TEST(ReplyReader, a_reply_that_closes_what_it_has_not_opened_is_told) {
  const auto closes = [](const std::string& text) {
    ReplyReader reader;
    ReadReply read;
    reader.start({}, addPart, &read);
    reader.push(text.data(), text.size());
    reader.finish();
    return reader.closedUnopened();
  };
  EXPECT_TRUE(closes("Hm.</think>Yes."));
  EXPECT_TRUE(closes("</think>Yes."));
  EXPECT_FALSE(closes("<think>Hm.</think>Yes."));
  EXPECT_FALSE(closes("<think>Hm.</think>It was </think>."));
  EXPECT_FALSE(closes("Say `</think>` to end."));
  EXPECT_TRUE(closes("A `<think>` alone.</think>Yes."));
  EXPECT_EQ("Yes.", readReply(ReplyForms{0}, "</think>\n\nYes.").text);
}

TEST(ReplyReader, an_answer_that_mentions_a_thought_is_an_answer) {
  for (const char* const text :
       {"Write `<think>a</think>` there.", "One\n<think>two</think>\nthree",
        "```html\n<think>\n</think>\n```\n", "<p> <think>a</think> and <think>b</think>",
        "`<think>` and `</think>`", "`</think>`"}) {
    ReplyReader reader;
    ReadReply read;
    reader.start({}, addPart, &read);
    reader.push(text, std::char_traits<char>::length(text));
    reader.finish();
    EXPECT_EQ(text, read.text);
    EXPECT_EQ("", read.thought) << text;
    EXPECT_FALSE(reader.closedUnopened()) << text;
    EXPECT_EQ(text, readReply(ReplyForms{0}, std::string("<think>x</think>") + text).text);
  }
  expectText(kFormMistral, "Mistral writes `[THINK]` first.");
  expectText(kFormGemma4, "It is `<|channel>thought`, it ends with `<channel|>`.");
}

TEST(ReplyReader, a_thought_that_is_opened_twice) {
  for (const char* const reply :
       {"<think><think>\nHm.</think>Yes.", "<think>\n<think>Hm.</think>\nYes."}) {
    const ReadReply read = readReply(ReplyForms{0}, reply);
    EXPECT_EQ("Hm.", read.thought) << reply;
    EXPECT_EQ("Yes.", read.text) << reply;
  }
  ReplySettings settings;  // by the template, and by the model once more
  settings.inside_thought = true;
  EXPECT_EQ("Hm.", readReply(settings, "<think>\nHm.</think>Yes.").thought);
  EXPECT_EQ("Is <think> a tag?",
            readReply(ReplyForms{0}, "<think>Is <think> a tag?</think>").thought);
}

TEST(ReplyReader, stray_marks_of_gemma) {
  for (const char* const reply : {"<|channel>thought\nHm.<channel|>Yes.<channel|>",
                                  "<|channel><|channel>thought\nHm.<channel|>Yes.",
                                  "<|channel>thought\n<|channel>thought\nHm.<channel|>Yes."}) {
    const ReadReply read = readReply(kFormGemma4, reply);
    EXPECT_EQ("Hm.", read.thought) << reply;
    EXPECT_EQ("Yes.", read.text) << reply;
  }
  const auto closes = [](const std::string& text) {
    ReplyReader reader;
    ReplySettings settings;
    settings.forms = kFormGemma4;
    reader.start(settings, nullptr, nullptr);
    reader.push(text.data(), text.size());
    reader.finish();
    return reader.closedUnopened();
  };
  EXPECT_EQ("Yes.\n", readReply(kFormGemma4, "Yes.<channel|>\n").text);
  EXPECT_FALSE(closes("Yes.<channel|>\n"));
  EXPECT_TRUE(closes("Hm.<channel|>Yes."));
}

TEST(ReplyReader, headers_of_harmony_are_no_text) {
  for (const char* const header :
       {"<|channel|>final <|constrain|>json<|message|>", "<|channel|>final json<|message|>",
        "<|start|>assistant<|channel|>final <|constrain|>JSON<|message|>",
        "<|channel|>commentary <|constrain|>json<|message|>"}) {
    const ReadReply read =
        readReply(kFormHarmony, "<|channel|>analysis<|message|>Hm.<|end|>" + std::string(header) +
                                    "{\"a\": 1}<|return|>");
    EXPECT_EQ("Hm.", read.thought) << header;
    EXPECT_EQ("{\"a\": 1}", read.text) << header;
  }
}

TEST(ReplyReader, a_call_of_kimi_ends_a_thought_that_was_not_closed) {
  const std::string call =
      "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>";
  for (const std::string& calls :
       {"<|tool_calls_section_begin|>" + call + "<|tool_calls_section_end|>", call}) {
    const ReadReply read = readReply(kFormKimi, "<think>Look it up." + calls);
    EXPECT_EQ("Look it up.", read.thought);
    EXPECT_EQ("", read.text);
    ASSERT_EQ(1u, read.calls.size()) << calls;
    EXPECT_TRUE(read.calls[0].ended);
  }
}

TEST(ReplyReader, marks_of_thoughts) {
  const struct {
    ReplyForms forms;
    const char* open;
    const char* close;
  } kMarksOfThoughts[] = {
      {kFormGemma4, "<|channel>thought\n", "<channel|>"},
      {kFormMistral, "[THINK]", "[/THINK]"},
      {kFormSeed, "<seed:think>", "</seed:think>"},
      {kFormCohere, "<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"},
      {kFormApertus, "<|inner_prefix|>", "<|inner_suffix|>"},
      {kFormHarmony, "<|channel|>analysis<|message|>",
       "<|end|><|start|>assistant<|channel|>final<|message|>"},
      {kFormSolar, "<|think|>", "<|end|><|begin|>assistant<|content|>"},
      {kFormKimi3, "<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"},
      {kFormHorizon, "<ifm|think>", "</ifm|think>"},
      {kFormHorizon, "<ifm|think_faster>\n", "\n</ifm|think_faster>\n"},
      {kFormThinkingTag, "<thinking>", "</thinking>"},
      {kFormAtem, " to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>"},
      {kFormFinalResponse, "Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"},
  };
  for (const auto& marks : kMarksOfThoughts) {
    const ReadReply read =
        readReply(marks.forms, std::string(marks.open) + "Hm </x>." + marks.close + "Yes.");
    EXPECT_EQ("Hm </x>.", read.thought) << marks.open;
    EXPECT_EQ("Yes.", read.text) << marks.open;
  }
}

TEST(ReplyReader, calls_inside_a_thought_are_thought) {
  const ReadReply read =
      readReply(kFormToolCall, std::string("<think>Maybe ") + kCall + "?</think>" + kCall);
  EXPECT_EQ(std::string("Maybe ") + kCall + "?", read.thought);
  ASSERT_EQ(1u, read.calls.size());
}

TEST(ReplyReader, a_call_in_tags_ends_a_thought_that_was_not_closed) {
  ReplySettings settings;
  settings.forms = kFormToolCall | kFormFunctionTag;
  settings.inside_thought = true;
  const ReadReply read = readReply(
      settings, "I <tool_call> now.\n<tool_call>\n<function=f>\n</function>\n</tool_call>\nDone.");
  EXPECT_EQ("I <tool_call> now.", read.thought);
  EXPECT_EQ("\nDone.", read.text);
  ASSERT_EQ(1u, read.calls.size());
  EXPECT_EQ("{}", read.calls[0].arguments);
}

TEST(ReplyReader, text_between_and_behind_calls) {
  const ReadReply read = readReply(kFormToolCall, std::string("First\n") + kCall + "\n\nthen\n" +
                                                      kCall + "\n" + kCall + "\nDone. ");
  EXPECT_EQ("First\n\n\nthen\n\nDone. ", read.text);
  EXPECT_EQ(3u, read.calls.size());
}

TEST(ReplyReader, a_thought_behind_a_call) {
  const ReadReply read =
      readReply(kFormToolCall, std::string(kCall) + "\n<think>Hm.</think>\n" + kCall + "\n");
  EXPECT_EQ("Hm.", read.thought);
  EXPECT_EQ("", read.text);
  EXPECT_EQ(2u, read.calls.size());
}

TEST(ReplyReader, json_in_any_order_with_other_keys) {
  for (
      const char* const item : {
          R"({"name": "f", "arguments": {"a": [1, {"b": null}]}})",
          R"({"name":"f","parameters":{"a":[1,{"b":null}]}})",
          R"({"arguments": {"a": [1, {"b": null}]}, "name": "f"})",
          R"({"id": "call_1", "type": "function", "name": "f", "arguments": {"a": [1, {"b": null}]}, "x": {}})",
          R"({"type": "function", "function": {"name": "f", "arguments": {"a": [1, {"b": null}]}}, "id": 3})",
          R"({"function": "f", "args": {"a": [1, {"b": null}]}})",
          R"({"name": "f", "arguments": "{\"a\": [1, {\"b\": null}]}"})",
          R"({"arguments": "{\"a\": [1, {\"b\": null}]}", "name": "f"})",
          R"({'name': 'f', 'arguments': {'a': [1, {'b': None}]}})",
      }) {
    expectCall(kFormToolCall, std::string("<tool_call> \n") + item + "\n </tool_call>\n", "f",
               R"({"a":[1,{"b":null}]})");
    expectCall(kFormBarCall, std::string("<|tool_call|>[") + item + "]", "f",
               R"({"a":[1,{"b":null}]})");
  }
  expectCall(kFormToolCall, R"(<tool_call>{"name": "f"}</tool_call>)", "f", "{}");
  expectCall(kFormToolCall, R"(<tool_call>{"name": "f", "arguments": null}</tool_call>)", "f",
             "{}");
}

TEST(ReplyReader, arguments_that_are_a_text) {
  const auto item = [](const std::string& text, bool name_first) {
    const std::string arguments = "\"arguments\": \"" + text + "\"";
    return name_first ? "{\"name\": \"f\", " + arguments + "}"
                      : "{" + arguments + ", \"name\": \"f\"}";
  };
  const auto inTags = [](const std::string& call) { return "<tool_call>" + call + "</tool_call>"; };
  for (const bool name_first : {true, false}) {
    for (const char* const nothing : {"", " \\n ", " null", "{}"}) {
      const std::string call = item(nothing, name_first);
      expectCall(kFormToolCall, inTags(call), "f", "{}");
      expectCall(kFormBareJson, call, "f", "{}");
      expectCall(kFormMistral, "[TOOL_CALLS][" + call + "]", "f", "{}");
      expectCall(kFormMistral, std::string("[TOOL_CALLS]f[ARGS]\"") + nothing + "\"", "f", "{}");
    }
    expectCall(kFormBareJson,
               name_first ? R"({"name": "f", "parameters": null})"
                          : R"({"parameters": null, "name": "f"})",
               "f", "{}");
    expectCall(kFormMistral, R"([TOOL_CALLS]f[ARGS] "{\"a\": \"x\\\"y\"}")", "f",
               R"({"a":"x\"y"})");
    const std::string call = item(" {\\\"a\\\": \\\"x\\\\\\\"y\\\"}", name_first);
    expectCall(kFormToolCall, inTags(call), "f", R"({"a":"x\"y"})");
    expectCall(kFormBareJson, call, "f", R"({"a":"x\"y"})");
    for (const char* const other : {"[1]", "5", "nul", "nullx", "some words"}) {
      expectText(kFormToolCall, inTags(item(other, name_first)));
      expectText(kFormBareJson, item(other, name_first));
    }
  }
}

TEST(ReplyReader, escapes_that_json_lacks_stay_as_they_stand) {
  const auto argument = [](ReplyForms forms, const std::string& head, const std::string& tail) {
    const ReadReply read = readReply(forms, head + tail);
    EXPECT_EQ(1u, read.calls.size()) << tail;
    return read.calls.size() != 1 || !read.calls[0].ended
               ? json()
               : json::parse(read.calls[0].arguments)["a"];
  };
  for (const char* const path : {R"(C:\Users\ann)", R"(D:\xfer\a)", R"(C:\app\0\v1)", R"(\up)",
                                 R"(\u12)", R"(\U0001F64)", R"(a\u)"}) {
    EXPECT_EQ(path,
              argument(kFormToolCall, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"",
                       std::string(path) + "\"}}</tool_call>"));
    EXPECT_EQ(path, argument(kFormBareJson, "{\"name\": \"f\", \"parameters\": {\"a\": \"",
                             std::string(path) + "\"}}"));
  }
  for (const char* const path :
       {R"(C:\Users)", R"(D:\xyz)", R"(C:\app\0\v1)", R"(\up)", R"(\x4)"}) {
    EXPECT_EQ(path, argument(kFormLfm, "<|tool_call_start|>[f(a=\"", std::string(path) + "\")]"));
  }
  EXPECT_EQ("A", argument(kFormLfm, "<|tool_call_start|>[f(a=\"", "\\x41\")]"));
}

TEST(ReplyReader, marks_inside_strings_are_text) {
  const char* const arguments = R"({"a":"</tool_call> <tool_call> </think> }]\" \\"})";
  expectCall(
      kFormToolCall,
      std::string("<tool_call>{\"name\": \"f\", \"arguments\": ") + arguments + "}</tool_call>",
      "f", arguments);
}

TEST(ReplyReader, strings_come_as_json_whatever_they_were) {
  const auto arguments = [](const std::string& value) {
    const ReadReply read = readReply(kFormLfm, "<|tool_call_start|>[f(a=" + value + ")]");
    EXPECT_EQ(1u, read.calls.size()) << value;
    return read.calls.empty() ? json() : json::parse(read.calls[0].arguments)["a"];
  };
  EXPECT_EQ("it's", arguments(R"('it\'s')"));
  EXPECT_EQ("it's", arguments("'it's'"));  // not escaped, as some templates show it
  EXPECT_EQ("say \"no\"!", arguments("\"say \"no\"!\""));
  EXPECT_EQ("a\nb\t\\d é \xF0\x9F\x99\x82", arguments(R"('a\nb\t\d \xe9 \U0001F642')"));
  EXPECT_EQ("\xF0\x9F\x99\x82 \xEF\xBF\xBD.", arguments(R"("\ud83d\ude42 \ud83d.")"));
  EXPECT_EQ("a\nb", arguments("'a\nb'"));
  EXPECT_EQ("", arguments("''"));
  EXPECT_EQ("a 'b' \"c\"\n", arguments("'''a 'b' \"c\"\n'''"));
  EXPECT_EQ("a\\n", arguments("r'a\\n'"));
  EXPECT_EQ("x", arguments("f'x'"));
  EXPECT_EQ(json::parse("[1, -2.5e3, true, false, null, [], {}]"),
            arguments("(1, -2.5e3, True, false, None, [], {})"));
  EXPECT_EQ(json::parse(R"({"1": 2, "k": {"d": "v"}})"), arguments("{1: 2, 'k': {d: v},}"));
  EXPECT_EQ("celsius", arguments("celsius"));
  EXPECT_EQ(std::string(300, '7'), arguments(std::string(300, '7')));
}

TEST(ReplyReader, python_calls) {
  const Tools tools(tool({{"first", {{"type", "string"}}}, {"second", {{"type", "number"}}}}));
  expectCall(kFormLfm, "<|tool_call_start|>\n[ f ( ) ]\n<|tool_call_end|>", "f", "{}");
  expectCall(kFormLfm, "<|tool_call_start|>[a.b_2( x = 1 , y=[2],)]", "a.b_2",
             R"({"x":1,"y":[2]})");
  expectCall(kFormLfm, "<|tool_call_start|>f(x=1)<|tool_call_end|>", "f", R"({"x":1})");
  expectCall(kFormLfm, "<|tool_call_start|>[f('a', 2)]", "f", R"({"first":"a","second":2})",
             &tools);
  expectCall(kFormBarePython, "\n[f(x='[')]\n", "f", R"({"x":"["})");
  expectText(kFormBarePython, "[f(1)]");
  expectText(kFormBarePython, "[f(x)]");
  expectText(kFormBarePython, "See [f(x=1)].");
  const ReadReply two = readReply(kFormBarePython, "[f(a=1),\n g(b=2)]");
  ASSERT_EQ(2u, two.calls.size());
  EXPECT_EQ("g", two.calls[1].name);
}

TEST(ReplyReader, bare_json_counts_at_the_begin_only) {
  expectCall(kFormBareJson, " \n{\"name\": \"f\", \"parameters\": {\"a\": 1}}\n", "f",
             R"({"a":1})");
  expectCall(kFormBareJson, "<think>\n</think>\n{\"name\": \"f\", \"parameters\": {}}", "f", "{}");
  expectCall(kFormBareJson, R"([{"name": "f", "parameters": {}}])", "f", "{}");
  expectText(kFormBareJson, R"(So: {"name": "f", "parameters": {}})");
  expectText(kFormBareJson, R"({"name": "f", "parameters": [1]})");
  expectText(kFormBareJson, R"({"name": "Ann", "parameters": "none"})");
  const ReadReply two =
      readReply(kFormBareJson,
                "{\"name\": \"f\", \"parameters\": {}};\n{\"name\": \"g\", \"arguments\": {}}\n"
                "{\"name\": \"h\", \"parameters\": {}}");
  ASSERT_EQ(3u, two.calls.size());
  EXPECT_EQ("h", two.calls[2].name);
}

TEST(ReplyReader, marks_and_json) {
  expectCall(kFormPythonTag, "<|python_tag|>search.call(query='x')<|eom_id|>", "search",
             R"({"query":"x"})");
  expectCall(kFormMistral, "[TOOL_CALLS]f[CALL_ID]abc123xyz[ARGS]{\"a\": 1}", "f", R"({"a":1})");
  expectCall(kFormMistral, "[TOOL_CALLS] f {\"a\": 1}", "f", R"({"a":1})");
  expectCall(kFormCapitals, "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOLCALL>\n", "f",
             "{}");
  expectCall(kFormToolCalls, "<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_calls>",
             "f", "{}");
  expectCall(kFormCohere,
             "<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": "
             "{}}\n]<|END_ACTION|>",
             "f", "{}");
  expectCall(kFormAction, "Action: ```json\n[\n{\"tool_name\": \"f\", \"parameters\": {}}\n]\n```",
             "f", "{}");
  expectCall(kFormKimi,
             "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
             "<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_calls_section_end|>",
             "f", R"({"a":1})");
  expectCall(
      kFormDeepSeek,
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}"
      "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "f", R"({"a":1})");
  expectCall(kFormDeepSeek,
             "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}"
             "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
             "f", R"({"a":1})");
  expectCall(kFormGigaChat, "<|function_call|>{\"name\": \"f\", \"arguments\": {}}", "f", "{}");
  expectCall(kFormApertus, "<|tools_prefix|>[{\"f\": {\"a\": 1}}]<|tools_suffix|>", "f",
             R"({"a":1})");
  expectCall(kFormSolar,
             "<|tool_calls|><|tool_call:begin|>id9<|tool_call:name|>f<|tool_call:args|>{}"
             "<|tool_call:end|><|calls|>",
             "f", "{}");
  for (const char* const head :
       {"<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
        "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>",
        " to=functions.f<|channel|>commentary json<|message|>"}) {
    expectCall(kFormHarmony, std::string(head) + "{\"a\": 1}<|call|>", "f", R"({"a":1})");
  }
  expectCall(kFormRecipient, "f\n{\"a\": 1}", "f", R"({"a":1})");
  EXPECT_EQ("Hello.", readReply(kFormRecipient, "all\nHello.>>>f\n{}").text);
  expectCall(kFormFunctionTag, "<function=f>{\"a\": 1}</function>", "f", R"({"a":1})");
  expectCall(kFormGemma4,
             "<|tool_call>call:f{a:<|\"|>{<|\"<|\"|>,b:[1,{c:None}],d:<|\"|><|\"|>}<tool_call|>",
             "f", R"({"a":"{<|\"","b":[1,{"c":null}],"d":""})");
}

TEST(ReplyReader, parameters_in_tags) {
  const Tools tools(tool({{"s", {{"type", "string"}}},
                          {"n", {{"type", "integer"}}},
                          {"o", {{"type", "object"}}},
                          {"u", {{"type", {"string", "null"}}}},
                          {"c", {{"anyOf", {{{"type", "string"}}, {{"type", "number"}}}}}},
                          {"e", {{"enum", {"1", "2"}}}}}));
  const struct {
    const char* key;
    const char* written;
    const char* value;
  } kValues[] = {
      {"s", "12", R"("12")"},
      {"s", "{\"a\": 1}", R"("{\"a\": 1}")"},
      {"s", "a < b </p> \"q\" \\", R"("a < b </p> \"q\" \\")"},
      {"s", "", R"("")"},
      {"n", " 12 ", "12"},
      {"n", "many", R"("many")"},
      {"o", "{'a': True}", R"({"a":true})"},
      {"u", "None", "null"},
      {"u", "nothing", R"("nothing")"},
      {"u", "[1]", R"("[1]")"},
      {"c", "12", "12"},
      {"c", "true", R"("true")"},
      {"e", "1", R"("1")"},
      {"unknown", "False", "false"},
      {"unknown", "[1, \"2\"]", R"([1,"2"])"},
      {"unknown", "[see note]", R"("[see note]")"},
      {"unknown", "{", R"("{")"},
      {"unknown", "1 2", R"("1 2")"},
  };
  for (const auto& each : kValues) {
    const std::string arguments = "{\"" + std::string(each.key) + "\":" + each.value + "}";
    const std::string key = each.key;
    const std::string value = each.written;
    expectCall(kFormToolCall | kFormFunctionTag,
               "<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + value +
                   "\n</parameter>\n</function>\n</tool_call>",
               "f", arguments, &tools);
    expectCall(kFormFunctionTag,
               "<function=f><parameter=" + key + ">" + value + "</parameter></function>", "f",
               arguments, &tools);
    expectCall(kFormNamedTag,
               "<function name=\"f\"><param name=\"" + key + "\">" + value + "</param></function>",
               "f", arguments, &tools);
    expectCall(kFormNamedTag,
               "<function name=\"f\"> <param name=\"" + key + "\"><![CDATA[" + value +
                   "]]></param> </function>",
               "f", arguments, &tools);
    expectCall(kFormMiniMax,
               "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"" + key + "\">" +
                   value + "</parameter>\n</invoke>\n</minimax:tool_call>",
               "f", arguments, &tools);
    expectCall(kFormToolCall,
               "<tool_call>f\n<arg_key>" + key + "</arg_key>\n<arg_value>" + value +
                   "</arg_value>\n</tool_call>",
               "f", arguments, &tools);
    expectCall(kFormHorizon,
               "<ifm|tool_calls><ifm|tool_call>f\n<ifm|arg_key>" + key +
                   "</ifm|arg_key>\n<ifm|arg_value>" + value +
                   "</ifm|arg_value>\n</ifm|tool_call></ifm|tool_calls>",
               "f", arguments, &tools);
    expectCall(kFormMiniMax3,
               "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<" + key +
                   ">" + value + "]<]minimax[>[</" + key +
                   ">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
               "f", arguments, &tools);
  }
  expectCall(kFormToolCall, "<tool_call>f</tool_call>", "f", "{}", &tools);
  expectCall(kFormHorizon, "<ifm|tool_call>f</ifm|tool_call>", "f", "{}", &tools);
  expectText(kFormToolCall, "<tool_call>tags are marks</tool_call>");
}

TEST(ReplyReader, tags_that_say_themselves_what_a_value_is) {
  expectCall(
      kFormDsml,
      "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" "
      "string=\"true\">12</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">"
      "12</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
      "f", R"({"s":"12","n":12})");
  expectCall(kFormKimi3,
             "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument "
             "key=\"s\" type=\"string\"<|sep|>12<|close|>argument<|sep|><|close|>call<|sep|>"
             "<|close|>tools<|sep|><|close|>message<|sep|>",
             "f", R"({"s":"12"})");
}

TEST(ReplyReader, line_ends_of_a_value_are_its_own_but_one) {
  const Tools tools(tool({{"s", {{"type", "string"}}}}));
  expectCall(kFormFunctionTag, "<function=f>\n<parameter=s>\n\n a\n\n\n</parameter>\n</function>",
             "f", R"({"s":"\n a\n\n"})", &tools);
  expectCall(kFormFunctionTag, "<function=f>\n<parameter=s>\n\n</parameter>\n</function>", "f",
             R"({"s":""})", &tools);
  // Line ends of the marks come as a pair: one at the end alone is the value's.
  expectCall(kFormFunctionTag, "<function=f><parameter=s>a\n</parameter></function>", "f",
             R"({"s":"a\n"})", &tools);
  expectCall(kFormSeed,
             "<seed:tool_call><function=f><parameter=s>a\n\n</parameter></function>"
             "</seed:tool_call>",
             "f", R"({"s":"a\n\n"})", &tools);
}

TEST(ReplyReader, tags_within_tags_are_objects_and_lists) {
  const auto reply = [](const std::string& tags) {
    std::string text = "<tool_call><invoke name=\"f\">" + tags + "</invoke></tool_call>";
    for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
      text.insert(at, "]<]minimax[>[");
      at += 13;
    }
    return text;
  };
  const json schema = {
      {"o",
       {{"type", "object"},
        {"properties", {{"zip", {{"type", "string"}}}, {"n", {{"type", "integer"}}}}}}},
      {"l", {{"type", "array"}, {"items", {{"type", "string"}}}}},
      {"m", {{"type", "object"}, {"properties", {{"item", {{"type", "number"}}}}}}}};
  const Tools tools(tool(schema));
  expectCall(kFormMiniMax3, reply("<o>\n<zip>018</zip>\n<n>2</n></o>"), "f",
             R"({"o":{"zip":"018","n":2}})", &tools);
  expectCall(kFormMiniMax3, reply("<l><item>1</item><item>two</item></l>"), "f",
             R"({"l":["1","two"]})", &tools);
  expectCall(kFormMiniMax3, reply("<l><each>1</each></l><m><item>1</item></m>"), "f",
             R"({"l":["1"],"m":{"item":1}})", &tools);
  expectCall(kFormMiniMax3, reply("<l></l><o></o><x></x>"), "f", R"({"l":[],"o":{},"x":""})",
             &tools);
  expectCall(kFormMiniMax3, reply("<a><item><k>1</k></item><item><k>b</k></item></a><c>2</c>"), "f",
             R"({"a":[{"k":1},{"k":"b"}],"c":2})");
  expectCall(kFormMiniMax3, reply("<a>[1, 2]</a>"), "f", R"({"a":[1,2]})");
  std::string deep;
  for (uint32_t i = 0; i <= TagValue::kMostDepth + 1; ++i) {
    deep = "<a>" + deep + "</a>";
  }
  EXPECT_FALSE(readReply(kFormMiniMax3, reply(deep)).calls.at(0).ended);
}

TEST(ReplyReader, values_longer_than_what_is_held) {
  const std::string words(3 * ReplyReader::kMostHeld, 'x');
  const std::string list = "[\"" + words + "\"]";
  const auto reply = [](const std::string& value) {
    return "<function=f><parameter=a>" + value + "</parameter></function>";
  };
  const auto read = [](const std::string& text) {
    ReplySettings settings;
    settings.forms = kFormFunctionTag;
    return readPieces(settings, {text});
  };
  EXPECT_EQ("{\"a\":\"" + words + "\"}", read(reply(words)).calls.at(0).arguments);
  EXPECT_EQ("{\"a\":" + list + "}", read(reply(list)).calls.at(0).arguments);
  EXPECT_EQ("{\"a\":\"[" + words + "\"}", read(reply("[" + words)).calls.at(0).arguments);
  EXPECT_FALSE(read(reply(list + "x")).calls.at(0).ended);  // it was shown as a list already
}

TEST(ReplyReader, what_is_too_long_to_be_held_is_text) {
  const std::string words(ReplyReader::kMostHeld, 'x');
  for (const std::string& text :
       {"<tool_call>{\"arguments\": {\"a\": \"" + words + "\"}, \"name\": \"f\"}</tool_call>",
        "<tool_call>{\"name\": \"" + words + "\", \"arguments\": {}}</tool_call>",
        "<tool_call>" + std::string(words.size(), ' ') + "{\"name\": \"f\"}",
        std::string(words.size(), ' ') + "x"}) {
    ReplySettings settings;
    settings.forms = kFormToolCall;
    const ReadReply read = readPieces(settings, {text});
    EXPECT_EQ(text, read.text);
    EXPECT_TRUE(read.calls.empty());
  }
}

TEST(ReplyReader, a_call_that_goes_wrong_never_ends) {
  for (const char* const reply :
       {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\" 1}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1}}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\" 1}\"}</tool_call>"}) {
    const ReadReply read = readReply(kFormToolCall, reply);
    ASSERT_EQ(1u, read.calls.size());
    EXPECT_FALSE(read.calls[0].ended) << reply;
    EXPECT_NE(std::string::npos, read.text.find("</tool_call>"));
  }
  const std::string deep = std::string(80, '[') + std::string(80, ']');
  EXPECT_FALSE(
      readReply(kFormToolCall, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": " + deep + "}}")
          .calls.at(0)
          .ended);
}

TEST(ReplyReader, no_calls_are_read_where_none_are_wanted) {
  ReplySettings settings;
  settings.forms = formsOfAnything();
  settings.calls = false;
  const ReadReply read = readReply(settings, std::string("<think>Hm.</think>") + kCall);
  EXPECT_EQ("Hm.", read.thought);
  EXPECT_EQ(kCall, read.text);
  EXPECT_EQ("[f(a=1)]", readReply(settings, "[f(a=1)]").text);
}

TEST(ReplyReader, nothing_stays_of_what_was_held) {
  ReplyReader reader;
  ReadReply read;
  ReplySettings settings;
  settings.forms = kFormToolCall;
  reader.start(settings, addPart, &read);
  const std::string text = "<tool_call>{\"name\": \"secretname\", \"arg";
  reader.push(text.data(), text.size());
  reader.forget();
  const std::string bytes(reinterpret_cast<const char*>(&reader), sizeof(reader));
  EXPECT_EQ(std::string::npos, bytes.find("secret"));
}

TEST(ReplyForms, of_templates) {
  const auto forms = [](const std::string& text) {
    return formsOfTemplate(text.data(), text.size());
  };
  EXPECT_EQ(kFormToolCall, forms("... <tool_call>\n{\"name\" ..."));
  EXPECT_EQ(kFormToolCall | kFormFunctionTag, forms("<tool_call>\n<function=f>"));
  EXPECT_EQ(formsOfAnything(), forms("{{ message.content }}"));
  EXPECT_EQ(formsOfAnything(), forms("{{ '<think>' }}"));
  EXPECT_EQ(kFormGemma4, formsOfFormat("gemma4"));
  EXPECT_EQ(formsOfAnything(), formsOfFormat("chatml"));
}

TEST(ReplyForms, what_opens_a_reply_may_open_a_thought) {
  const auto opens = [](ReplyForms forms, const std::string& text) {
    return opensThought(text.data(), text.size(), forms);
  };
  EXPECT_TRUE(opens(0, "<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(opens(0, "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens(0, "<|im_start|>assistant\n"));
  EXPECT_FALSE(opens(0, ""));
  EXPECT_TRUE(opens(kFormKimi3, "<|open|>think<|sep|>"));
  EXPECT_FALSE(opens(kFormToolCall, "[THINK]"));
}

TEST(ReplyForms, every_thought_has_an_end) {
  for (uint8_t row = 0; row < kMarkCount; ++row) {
    if ((kMarks[row].kinds & kMarkThought) == 0) {
      continue;
    }
    const std::string text =
        std::string(kMarks[row].text) + "so" + endOfThought(&kMarks[row]) + "yes";
    const ReadReply reply = readReply(kMarks[row].forms, text);
    EXPECT_EQ("so", reply.thought) << text;
    EXPECT_EQ("yes", reply.text) << text;
  }
  EXPECT_STREQ("</think>", endOfThought(nullptr));
}

TEST(ReplyForms, few_bytes_begin_marks) {
  std::set<char> first;
  for (uint8_t row = 0; row < kMarkCount; ++row) {
    EXPECT_LT(std::string(kMarks[row].text).size(), kMostMark);
    EXPECT_GE(std::string(kMarks[row].text).size(), 2u);
    first.insert(kMarks[row].text[0]);
  }
  EXPECT_LT(first.size(), 16u);  // the reader's limit on groups
}

}  // namespace
}  // namespace oriel_internal::test::test_reply_reader
