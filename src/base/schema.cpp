// JSON schema (draft 7): valijson decides, this file says what is wrong in words.
#define VALIJSON_USE_EXCEPTIONS 1   // without it a bad schema ends the process
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/text.h"
#include "base/yaml.h"

namespace hone {
namespace {

using nlohmann::json;

// A pattern is matched by std::regex, whose depth of recursion grows with the text.
constexpr std::size_t kMaxMatched = 4096;

struct Problem {
  std::string pointer, message, hint;
};

std::string escape(const std::string& key) {
  std::string out;
  for (char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

// The schemas that a value must meet or may meet: references followed, combinations spread out.
class Schemas {
 public:
  explicit Schemas(const json& root) : root_(&root) { add(root, 0); }

  const std::vector<const json*>& all() const { return list_; }
  bool alternatives() const { return alternatives_; }

  Schemas member(const std::string& key) const {
    return step([&](const json& each, Schemas& out) {
      const auto properties = each.find("properties");
      if (properties != each.end() && properties->contains(key)) out.add(properties->at(key), 0);
      else if (each.contains("additionalProperties")) out.add(each["additionalProperties"], 0);
    });
  }
  Schemas element() const {
    return step([](const json& each, Schemas& out) {
      if (each.contains("items")) out.add(each["items"], 0);
    });
  }

 private:
  template <class F>
  Schemas step(F&& pick) const {
    Schemas out(*this);
    out.list_.clear();
    out.alternatives_ = false;
    for (const json* each : list_) pick(*each, out);
    return out;
  }

  void add(const json& schema, int depth) {
    if (!schema.is_object() || depth > 16) return;
    if (const auto reference = schema.find("$ref"); reference != schema.end()) {
      const std::string target = reference->get<std::string>();
      if (target.starts_with("#")) add(root_->at(json::json_pointer(target.substr(1))), depth + 1);
      return;
    }
    list_.push_back(&schema);
    for (const char* word : {"allOf", "anyOf", "oneOf"}) {
      const auto parts = schema.find(word);
      if (parts == schema.end()) continue;
      if (std::string_view(word) != "allOf") alternatives_ = true;
      for (const json& each : *parts) add(each, depth + 1);
    }
    for (const char* word : {"then", "else"})
      if (schema.contains(word)) add(schema[word], depth + 1);
  }

  const json* root_;
  std::vector<const json*> list_;
  bool alternatives_ = false;
};

std::string_view kind_of(const json& value) {
  if (value.is_null()) return "nothing";
  if (value.is_boolean()) return "true or false";
  if (value.is_number_integer()) return "a whole number";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "text";
  return value.is_array() ? "a list" : "a map";
}

std::string type_words(const json& type) {
  if (type.is_array()) {
    std::string out;
    for (std::size_t i = 0; i < type.size(); ++i) out += (i == 0 ? "" : i + 1 == type.size() ? " or " : ", ") + type_words(type[i]);
    return out;
  }
  const std::string name = type.get<std::string>();
  if (name == "integer") return "a whole number";
  if (name == "number") return "a number";
  if (name == "string") return "text";
  if (name == "boolean") return "true or false";
  if (name == "array") return "a list";
  if (name == "object") return "a map";
  return "nothing";
}

bool has_type(const json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return value.is_null();
}

bool has_any_type(const json& value, const json& type) {
  if (!type.is_array()) return has_type(value, type.get<std::string>());
  for (const json& each : type)
    if (has_type(value, each.get<std::string>())) return true;
  return false;
}

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::vector<std::string> words_of(const json& list) {
  std::vector<std::string> words;
  for (const json& each : list)
    if (each.is_string()) words.push_back(each.get<std::string>());
  return words;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  if (!near.empty()) return fmt::format("did you mean \"{}\"?", near);
  return known.empty() || known.size() > 24 ? "" : fmt::format("known: {}", fmt::join(known, ", "));
}

std::string quoted_part(const std::string& description) {
  const std::size_t first = description.find('\''), last = description.rfind('\'');
  return first == std::string::npos || last <= first ? "" : description.substr(first + 1, last - first - 1);
}

// What a schema's own keywords say against a value; empty when nothing.
std::string complaint(const json& schema, const json& value, std::string& hint) {
  if (schema.contains("type") && !has_any_type(value, schema["type"]))
    return fmt::format("must be {}, not {}", type_words(schema["type"]), kind_of(value));
  if (schema.contains("const") && schema["const"] != value) return fmt::format("must be {}", shown(schema["const"]));
  if (schema.contains("enum")) {
    bool found = false;
    for (const json& each : schema["enum"]) found = found || each == value;
    if (!found) {
      const std::vector<std::string> words = words_of(schema["enum"]);
      if (const std::string near = value.is_string() ? nearest(value.get<std::string>(), words) : ""; !near.empty())
        hint = fmt::format("did you mean \"{}\"?", near);
      return fmt::format("{} is not one of {}", shown(value), fmt::join(words, ", "));
    }
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"].get<double>())
      return fmt::format("{} is below {}", shown(value), shown(schema["minimum"]));
    if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"].get<double>())
      return fmt::format("{} must be above {}", shown(value), shown(schema["exclusiveMinimum"]));
    if (schema.contains("maximum") && number > schema["maximum"].get<double>())
      return fmt::format("{} is above {}", shown(value), shown(schema["maximum"]));
  }
  const std::size_t size = value.is_string() ? value.get_ref<const std::string&>().size() : value.size();
  const auto outside = [&](const char* low, const char* high, const char* what) -> std::string {
    if (schema.contains(low) && size < schema[low].get<std::size_t>())
      return schema[low] == 1 ? std::string("must not be empty") : fmt::format("needs at least {} {}", shown(schema[low]), what);
    if (schema.contains(high) && size > schema[high].get<std::size_t>())
      return fmt::format("has {} {}, more than {}", size, what, shown(schema[high]));
    return "";
  };
  if (value.is_string()) {
    if (std::string text = outside("minLength", "maxLength", "characters"); !text.empty()) return text;
    if (schema.contains("pattern")) return fmt::format("{} does not match {}", shown(value), schema["pattern"].get<std::string>());
  }
  if (value.is_array()) return outside("minItems", "maxItems", "elements");
  if (value.is_object()) return outside("minProperties", "maxProperties", "keys");
  return "";
}

// One error of valijson in words. `path` holds keys and indices from the root.
Problem explain(const json& root, const json& schema, const std::vector<std::string>& path, const std::string& description) {
  const json* value = &root;
  Schemas schemas(schema);
  Problem problem;
  for (const std::string& step : path) {
    for (const json* each : schemas.all())
      if (each->contains("errorMessage") && schemas.alternatives()) {
        problem.message = (*each)["errorMessage"].get<std::string>();
        return problem;
      }
    if (value->is_object() && value->contains(step)) {
      schemas = schemas.member(step);
      value = &value->at(step);
    } else if (value->is_array() && std::stoull("0" + step) < value->size()) {
      schemas = schemas.element();
      value = &value->at(std::stoull("0" + step));
    } else {
      break;
    }
    problem.pointer += "/" + escape(step);
  }
  for (const json* each : schemas.all())
    if (each->contains("errorMessage")) {
      problem.message = fmt::format("{}, not {}", (*each)["errorMessage"].get<std::string>(), shown(*value));
      return problem;
    }
  if (description.find("'additionalProperties'") != std::string::npos) {
    const std::string key = quoted_part(description.substr(description.rfind(": ")));
    std::vector<std::string> known;
    for (const json* each : schemas.all())
      if (each->contains("properties"))
        for (const auto& [name, ignored] : (*each)["properties"].items()) known.push_back(name);
    problem.pointer += "/" + escape(key);
    problem.message = fmt::format("unknown key \"{}\"", key);
    problem.hint = suggestion(key, known);
    return problem;
  }
  if (description.starts_with("Missing required property")) {
    problem.message = fmt::format("the key \"{}\" is missing", quoted_part(description));
    return problem;
  }
  for (const json* each : schemas.all()) {
    problem.message = complaint(*each, *value, problem.hint);
    if (!problem.message.empty()) return problem;
  }
  problem.message = description;
  return problem;
}

// Refuses text that a pattern would have to match and that is too long for it.
Result<> guard_patterns(const json& value, const Schemas& schemas, const std::string& pointer, Problem& problem) {
  if (schemas.all().empty()) return {};
  if (value.is_string() && value.get_ref<const std::string&>().size() > kMaxMatched) {
    for (const json* each : schemas.all())
      if (each->contains("pattern")) {
        problem = {pointer, fmt::format("has more than {} characters", kMaxMatched), ""};
        return fail(ErrorKind::contract, "too long");
      }
  }
  if (value.is_object())
    for (const auto& [key, member] : value.items())
      HONE_CHECK(guard_patterns(member, schemas.member(key), pointer + "/" + escape(key), problem));
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      HONE_CHECK(guard_patterns(value[i], schemas.element(), pointer + "/" + std::to_string(i), problem));
  return {};
}

// Whether the value meets the schema; if not, `problem` says where and what.
// valijson knows no whole numbers above 2^63 - 1: for it they become that one.
bool clamp_large(json& value) {
  bool any = false;
  if (value.is_structured())
    for (json& each : value) any = clamp_large(each) || any;
  else if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) value = INT64_MAX, any = true;
  return any;
}

Result<bool> meets(const json& given, std::string_view schema_text, Problem& problem) {
  json value = given;
  clamp_large(value);
  json schema = json::parse(schema_text, nullptr, false);
  clamp_large(schema);
  if (!schema.is_object()) return fail(ErrorKind::internal, "the schema is not a JSON object");
  try {
    if (!guard_patterns(value, Schemas(schema), "", problem)) return false;
    valijson::Schema compiled;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled);
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(compiled, valijson::adapters::NlohmannJsonAdapter(value), &results)) return true;
    // The innermost error is the cause; those further out only say that something inside failed.
    const valijson::ValidationResults::Error* deepest = nullptr;
    for (const auto& each : results)
      if (deepest == nullptr || each.context.size() > deepest->context.size()) deepest = &each;
    if (deepest == nullptr) return fail(ErrorKind::internal, "the schema check failed without an error");
    std::vector<std::string> path;
    for (std::size_t i = 1; i < deepest->context.size(); ++i) {
      const std::string& step = deepest->context[i];
      path.push_back(step.size() >= 2 && step.front() == '[' ? step.substr(1, step.size() - 2) : step);
    }
    problem = explain(value, schema, path, deepest->description);
    return false;
  } catch (const std::exception& exception) {
    return fail(ErrorKind::internal, "schema check: {}", exception.what());
  }
}

std::string sentence(const Problem& problem) {
  return problem.pointer.empty() ? problem.message : problem.pointer.substr(1) + ": " + problem.message;
}

}  // namespace

Result<> check_schema(const YamlDocument& document, std::string_view schema) {
  Problem problem;
  HONE_TRY(const bool good, meets(document.value, schema, problem));
  if (good) return {};
  return fail(make_error(ErrorKind::contract, "{}", sentence(problem)).at(document.place_of(problem.pointer)).with_hint(problem.hint));
}

Result<> check_schema(const nlohmann::json& value, std::string_view schema, const std::string& what, const Place& place) {
  Problem problem;
  HONE_TRY(const bool good, meets(value, schema, problem));
  if (good) return {};
  return fail(make_error(ErrorKind::contract, "{}: {}", what, sentence(problem)).at(place).with_hint(problem.hint));
}

}  // namespace hone
