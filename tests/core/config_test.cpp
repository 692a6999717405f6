#include "core/config.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "core/typed_text.h"

namespace cohort::config {
namespace {

struct Settings {
  int batch_size = 32;
  double lr = 1e-3;
  std::string name = "run";
  bool amp = false;
  std::vector<int> widths{1, 2};
  std::vector<std::string> columns;
  std::optional<double> clip;
  std::string precision = "fp32";
};

void bind(Fields& fields, Settings& s) {
  fields.section("train", [&] {
    fields.add("batch_size", s.batch_size, "samples per process");
    fields.add("lr", s.lr, "learning rate");
    fields.add("amp", s.amp, "mixed precision");
    fields.add("clip", s.clip, "largest gradient norm");
    fields.add_choice("precision", s.precision, {"fp32", "bf16"}, "arithmetic");
  });
  fields.section("model", [&] { fields.add("widths", s.widths, "layers"); });
  fields.add("name", s.name, "name of the run");
  fields.add("columns", s.columns, "columns");
  fields.alias("train.learning_rate", "train.lr");
}

TEST(Config, OverridesSetEveryKindOfField) {
  Settings s;
  Fields fields;
  bind(fields, s);
  for (const char* text : {"train.batch_size=8", "train.learning_rate=5e-4", "train.amp=True", "train.clip=1",
                           "train.precision=bf16", "model.widths=[3,4,5]", "name=a=b", "columns=x,y"})
    fields.apply_override(text);
  EXPECT_EQ(s.batch_size, 8);
  EXPECT_DOUBLE_EQ(s.lr, 5e-4);
  EXPECT_TRUE(s.amp);
  EXPECT_DOUBLE_EQ(s.clip.value(), 1.0);
  EXPECT_EQ(s.precision, "bf16");
  EXPECT_EQ(s.widths, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(s.name, "a=b");
  EXPECT_EQ(s.columns, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(fields.was_set("train.lr"));
  EXPECT_FALSE(Fields().was_set("train.lr"));
}

TEST(Config, TextsOfAnyBytesSurviveTheirJson) {
  Settings s, again;
  Fields fields, others;
  bind(fields, s);
  bind(others, again);
  fields.apply_override("name=load\xE9.csv");
  fields.apply_override("columns=\xB7\xE7,温度");
  EXPECT_EQ(s.name, "load\xE9.csv");
  EXPECT_EQ(s.columns, (std::vector<std::string>{"\xB7\xE7", "温度"}));
  const std::string text = json_text(fields.to_json());  // throws over what is no UTF-8
  others.apply_json(parse_json<Json>(text), "config.json");
  EXPECT_EQ(again.name, s.name);
  EXPECT_EQ(again.columns, s.columns);
  try {
    fields.apply_override("train.batch_size=\xE9");
    FAIL() << "no whole number";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("train.batch_size"), std::string::npos) << e.what();
  }
}

TEST(Config, ListsOfTextsNeedNoQuotesInTheirBrackets) {
  const auto columns = [](const std::string& text) {
    Settings s;
    Fields fields;
    bind(fields, s);
    fields.apply_override("columns=" + text);
    return s.columns;
  };
  using Texts = std::vector<std::string>;
  for (const char* text : {"[a,b]", "[a, b]", "a,b", R"(["a","b"])"})
    EXPECT_EQ(columns(text), (Texts{"a", "b"})) << text;
  EXPECT_EQ(columns("[1st,2nd]"), (Texts{"1st", "2nd"}));
  EXPECT_EQ(columns("[]"), Texts());
  EXPECT_EQ(columns("[deg],[rad]"), (Texts{"[deg]", "[rad]"})) << "names that hold brackets themselves";
  EXPECT_EQ(columns("[pose[0:3],grip]"), (Texts{"pose[0:3]", "grip"}));
  EXPECT_EQ(columns("[action | clip(-1, 1), grip]"), (Texts{"action | clip(-1, 1)", "grip"}));
  EXPECT_EQ(columns("resize(32, 32),crop(28, 28)"), (Texts{"resize(32, 32)", "crop(28, 28)"}));
  EXPECT_EQ(columns("[a(b, c]"), (Texts{"a(b", "c"})) << "a parenthesis that does not close";
  EXPECT_EQ(columns("[terrain=rough, scales=[a:2,b:0]]"), (Texts{"terrain=rough", "scales=[a:2,b:0]"}));
  EXPECT_EQ(columns("a[,b"), (Texts{"a[", "b"})) << "brackets that do not match are letters";
  EXPECT_EQ(columns(R"(["a,b"])"), Texts{"a,b"});
}

TEST(Config, NumbersMayBeWrittenAsPeopleDo) {
  Settings s;
  Fields fields;
  bind(fields, s);
  const auto clip = [&](const std::string& text) {
    fields.apply_override("train.clip=" + text);
    return s.clip.value();
  };
  EXPECT_EQ(clip(".5"), 0.5);
  EXPECT_EQ(clip("-.5"), -0.5);
  EXPECT_EQ(clip("5."), 5.0);
  EXPECT_EQ(clip("+5"), 5.0);
  EXPECT_EQ(clip("5.e-1"), 0.5);
  fields.apply_override("train.batch_size=+8");
  EXPECT_EQ(s.batch_size, 8);
  fields.apply_override("model.widths=[+3, 4]");
  EXPECT_EQ(s.widths, (std::vector<int>{3, 4}));
  for (const char* text : {".", "+", "-", ".e5", "1.2.3", "nan", "+-5", ""})
    EXPECT_NE(message_of([&] { clip(text); }), "") << text;
}

TEST(Config, AnOverrideIsToldFromASavedValue) {
  Settings s;
  Fields fields;
  bind(fields, s);
  const Json saved = {{"train", {{"batch_size", 64}, {"lr", 0.5}}}};
  fields.apply_json(saved, "c.json");
  fields.apply_override("train.learning_rate=0.25");
  EXPECT_TRUE(fields.was_set("train.batch_size"));
  EXPECT_FALSE(fields.was_overridden("train.batch_size"));
  EXPECT_TRUE(fields.was_overridden("train.lr"));
}

TEST(Config, AnUnknownKeyNamesTheNearestKnownOne) {
  Settings s;
  Fields fields;
  bind(fields, s);
  const std::string message = message_of([&] { fields.apply_override("train.bach_size=8"); });
  EXPECT_NE(message.find("unknown setting 'train.bach_size'"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'train.batch_size'"), std::string::npos) << message;
}

TEST(Config, APartOfASettingsNameFindsIt) {
  Settings s;
  Fields fields;
  bind(fields, s);
  int more = 0;
  for (const char* section : {"data", "loader", "validation"})
    fields.section(section, [&] { fields.add("batch_size", more, "samples"); });
  fields.section("policy", [&] { fields.add("learning_rate", s.lr, "learning rate"); });
  fields.add("n_envs", more, "environments");
  const auto meant = [&](const std::string& typed) {
    const std::string message = message_of([&] { fields.apply_override(typed + "=8"); });
    const std::size_t begin = message.find("did you mean "), end = message.find("?; --help");
    return begin == std::string::npos ? "nothing" : message.substr(begin + 13, end - begin - 13);
  };
  EXPECT_EQ(meant("lr"), "'train.lr'");
  EXPECT_EQ(meant("n_env"), "'n_envs'");
  EXPECT_EQ(meant("learning_rat"), "'policy.learning_rate'");
  EXPECT_EQ(meant("bs"), "'train.batch_size', 'data.batch_size' or 'loader.batch_size'") << "initials";
  EXPECT_EQ(meant("batch"), "'train.batch_size', 'data.batch_size' or 'loader.batch_size'") << "at most three";
  EXPECT_EQ(meant("data.batch"), "'data.batch_size'");
  EXPECT_EQ(meant("model.learning_rate"), "'policy.learning_rate'");
  EXPECT_EQ(meant("lerning_rate"), "'policy.learning_rate'") << "other letters, and without its section";
  EXPECT_EQ(meant("q"), "nothing");
  EXPECT_EQ(meant("zebra"), "nothing");
}

TEST(Config, AGroupOfSettingsIsToldFromASetting) {
  Settings s;
  Fields fields;
  bind(fields, s);
  const std::string message = message_of([&] { fields.apply_override("train=8"); });
  EXPECT_NE(message.find("'train' is a group of settings, of which the first is train."), std::string::npos) << message;
}

TEST(Config, AWrongTypeNamesFieldAndWhatItTakes) {
  Settings s;
  Fields fields;
  bind(fields, s);
  const std::string message = message_of([&] { fields.apply_override("train.batch_size=many"); });
  EXPECT_NE(message.find("'train.batch_size' takes whole number"), std::string::npos) << message;
  EXPECT_EQ(s.batch_size, 32);
  EXPECT_NE(message_of([&] { fields.apply_override("train.precision=fp8"); }).find("fp32|bf16"), std::string::npos);
  EXPECT_NE(message_of([&] { fields.apply_override("train.batch_size=99999999999"); }), "");
}

TEST(Config, AFaultyJsonChangesNothing) {
  Settings s;
  Fields fields;
  bind(fields, s);
  const Json json = {{"train", {{"batch_size", 64}, {"lr", "fast"}}}};
  EXPECT_NE(message_of([&] { fields.apply_json(json, "c.json"); }).find("c.json"), std::string::npos);
  EXPECT_EQ(s.batch_size, 32);
}

TEST(Config, OnlyWhatDiffersFromTheDefaultsIsChanged) {
  Settings s;
  Fields fields;
  bind(fields, s);
  EXPECT_EQ(fields.changed(), Json::object());
  fields.apply_override("train.lr=0.25");
  fields.apply_override("train.batch_size=32");  // what it was
  EXPECT_EQ(fields.changed(), Json({{"train", {{"lr", 0.25}}}}));
  EXPECT_TRUE(fields.has("train.lr"));
  EXPECT_FALSE(fields.has("train.lrr"));
}

TEST(Config, AWholeNumberMayBeWrittenWithAnExponent) {
  Settings s;
  Fields fields;
  bind(fields, s);
  fields.apply_override("train.batch_size=1e3");
  EXPECT_EQ(s.batch_size, 1000);
  fields.apply_override("train.batch_size=64.0");
  EXPECT_EQ(s.batch_size, 64);
  EXPECT_NE(message_of([&] { fields.apply_override("train.batch_size=1.5"); }).find("expected a whole number"),
            std::string::npos);
  EXPECT_NE(message_of([&] { fields.apply_override("train.batch_size=1e10"); }).find("out of range"),
            std::string::npos);
  EXPECT_NE(message_of([&] { fields.apply_override("train.batch_size=1e300"); }).find("expected a whole number"),
            std::string::npos);
}

TEST(Config, AFileMayBeYamlAndAFaultIsNamedByItsLine) {
  const std::string path = testing::TempDir() + format("cohort_config_{}", ::getpid());
  const auto read = [&](const char* extension, const char* text) {
    write_file_atomically(path + extension, text);
    Settings s;
    Fields fields;
    bind(fields, s);
    fields.apply_file(path + extension);
    return s;
  };
  EXPECT_EQ(read(".json", "{\"train\": {\"batch_size\": 8}}  // a comment").batch_size, 8);
  EXPECT_NE(
      message_of([&] { read(".json", "{\"train\": {\n  \"batch_size\": 8,\n}}"); }).find(".json: line 3 is no JSON"),
      std::string::npos);
  EXPECT_NE(message_of([&] { read(".json", ""); }).find(".json is empty, and no JSON"), std::string::npos);
  EXPECT_NE(message_of([&] {
              read(".json", "\n<!DOCTYPE html><html></html>");
            }).find(".json is a web page, not the file itself"),
            std::string::npos);
  if (message_of([&] { read(".yaml", "a: 1"); }).find("reads no YAML") != std::string::npos) return;
  const Settings s = read(".yaml", "train:\n  batch_size: 8\n  lr: 1e-4\nmodel:\n  widths: [7, 8]\n");
  EXPECT_EQ(s.batch_size, 8);
  EXPECT_EQ(s.lr, 1e-4);
  EXPECT_EQ(s.widths, (std::vector<int>{7, 8}));
}

TEST(Config, TheNearestNameHasSomethingOfTheWord) {
  EXPECT_EQ(nearest("x", {"exp", "abs"}), "");
  EXPECT_EQ(nearest("tpi", {"tip", "rail"}), "tip");
  EXPECT_EQ(nearest("horizn", {"horizon", "play"}), "horizon");
  EXPECT_EQ(nearest("qqqqqq", {"horizon", "play"}), "");
}

TEST(Config, TheResolvedConfigurationReadsBack) {
  Settings s, t;
  Fields a, b;
  bind(a, s);
  bind(b, t);
  a.apply_override("train.lr=0.25");
  a.apply_override("model.widths=7");
  b.apply_json(a.to_json(), "copy");
  EXPECT_EQ(a.to_json(), b.to_json());
  EXPECT_EQ(t.widths, std::vector<int>{7});
  EXPECT_NE(a.help().find("train.batch_size = 32"), std::string::npos);
}

/// The value after it was written as it is typed and read again.
Json read_again(Json settings, const std::string& path) {
  Settings first, second;
  Fields fields, again;
  bind(fields, first), bind(again, second);
  fields.apply_json(settings, "c.json");
  const Json::json_pointer at("/" + path);
  const std::string dotted =
      path.find('/') == std::string::npos ? path : std::string(path).replace(path.find('/'), 1, ".");
  again.apply_override(dotted + "=" + typed_text(fields.to_json().at(at)));
  EXPECT_EQ(again.to_json().at(at), fields.to_json().at(at)) << typed_text(fields.to_json().at(at));
  return again.to_json().at(at);
}

TEST(TypedText, IsReadBackAsTheSameValue) {
  for (const char* text : {"a", "", "\"quoted\"", "5", "null", "[a]", "a b", "a,b"})
    read_again({{"name", text}}, "name");
  for (const Json& list : {Json::array(), Json{"a"}, Json{"a", "b c"}, Json{"1", "2"}, Json{"a,b", "c"}, Json{""},
                           Json{"resize(16, 16)"}, Json{" a "}, Json{"null"}, Json{"[a]", "\"b\""}})
    read_again({{"columns", list}}, "columns");
  read_again({{"model", {{"widths", {3, 4}}}}}, "model/widths");
  read_again({{"model", {{"widths", Json::array()}}}}, "model/widths");
  read_again({{"train", {{"clip", nullptr}}}}, "train/clip");
  read_again({{"train", {{"clip", 0.5}}}}, "train/clip");
  read_again({{"train", {{"amp", true}}}}, "train/amp");
}

TEST(TypedText, IsAsShortAsAPersonWritesIt) {
  EXPECT_EQ(typed_text(Json("reach")), "reach");
  EXPECT_EQ(typed_text(Json{"state", "picture"}), "[state,picture]");
  EXPECT_EQ(typed_text(Json{256, 256}), "[256,256]");
  EXPECT_EQ(typed_text(Json(0.001)), "0.001");
  EXPECT_EQ(typed_text(nlohmann::json{"a", "b"}), "[a,b]");
  EXPECT_EQ(said_text(Json(nullptr)), "unset");
  EXPECT_EQ(said_text(Json("")), "\"\"") << "a sentence shows it";
}

}  // namespace
}  // namespace cohort::config
