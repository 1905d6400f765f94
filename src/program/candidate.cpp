#include "program/candidate.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/expression.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/yaml.h"
#include "toolchain/recipe.h"

namespace hone {
namespace {

constexpr std::size_t kMostPoints = 200'000;   // points tried for a default configuration

std::optional<std::int64_t> as_integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "K_1 + M" as a JSON pointer's part.
std::string pointer_part(std::string name) {
  for (std::size_t at = 0; (at = name.find_first_of("~/", at)) != std::string::npos; at += 2)
    name.replace(at, 1, name[at] == '~' ? "~0" : "~1");
  return name;
}

std::string hash_of_candidate(const Candidate& candidate) {
  FieldHash hash;
  hash.add("hone.candidate/1").add(hash_of(candidate.sources)).add(candidate.language).add(candidate.compiler);
  hash.add(std::to_string(candidate.flags.size()));
  for (const std::string& flag : candidate.flags) hash.add(flag);
  for (const auto& [name, value] : candidate.values) hash.add(name).add(value);
  return hash.hex();
}

// The first constraint that `values` breaks; empty when all hold.
Result<std::string> broken_constraint(const Candidate& candidate, const Parameters& values) {
  if (candidate.constraints.empty()) return std::string();
  ExpressionValues numbers;
  for (const auto& [name, text] : values)
    if (const auto number = as_integer(text)) numbers[name] = {*number};
  for (const std::string& constraint : candidate.constraints) {
    HONE_TRY(const std::int64_t holds, evaluate(constraint, numbers));
    if (holds == 0) return constraint;
  }
  return std::string();
}

// The first listed values; where constraints refuse them, the first allowed point with the last
// parameter running fastest. `fixed` parameters stay.
Result<Parameters> default_values(const Candidate& candidate, const Parameters& fixed) {
  std::vector<const TunableParameter*> open;
  Parameters values = fixed;
  for (const TunableParameter& parameter : candidate.parameters)
    if (!fixed.contains(parameter.name)) {
      open.push_back(&parameter);
      values[parameter.name] = parameter.values[0];
    }
  std::vector<std::size_t> index(open.size(), 0);
  for (std::size_t tried = 0; tried < kMostPoints; ++tried) {
    HONE_TRY(const std::string broken, broken_constraint(candidate, values));
    if (broken.empty()) return values;
    std::size_t i = open.size();
    while (i-- > 0) {
      index[i] = (index[i] + 1) % open[i]->values.size();
      values[open[i]->name] = open[i]->values[index[i]];
      if (index[i] != 0) break;
    }
    if (i == std::string::npos)
      return fail(make_error(ErrorKind::contract,
                             "no configuration satisfies all constraints; the first one breaks `{}`", broken));
  }
  return fail(
      make_error(ErrorKind::contract, "none of the first {} configurations satisfies the constraints", kMostPoints)
          .with_hint("name an allowed one under `values`"));
}

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : std::to_string(value.get<std::int64_t>());
}

Result<> read_settings(const YamlDocument& document, Candidate& candidate) {
  if (document.value.is_null()) return {};   // an empty file
  HONE_TRY(const fs::path share, share_dir());
  HONE_TRY(const std::string schema, read_file(share / "schema/candidate.json"));
  HONE_CHECK(check_schema(document, schema));
  const nlohmann::json& root = document.value;
  candidate.language = root.value("language", candidate.language);
  candidate.compiler = root.value("compiler", candidate.is_cuda() ? "nvcc" : "g++");
  if ((candidate.compiler == "nvcc") != candidate.is_cuda())
    return fail(make_error(ErrorKind::contract, "{} does not compile a candidate of language {}", candidate.compiler, candidate.language)
                    .at(document.place_of("/compiler"))
                    .with_hint(candidate.is_cuda() ? "leave `compiler` out: it is nvcc" : "use g++ or clang++"));
  candidate.flags = root.value("flags", candidate.flags);
  for (std::size_t i = 0; i < candidate.flags.size(); ++i)
    if (auto allowed = check_flag(candidate.compiler, candidate.flags[i]); !allowed) {
      Error error = std::move(allowed).error();
      error.kind = ErrorKind::contract;
      return fail(std::move(error).at(document.place_of(fmt::format("/flags/{}", i))));
    }

  std::vector<std::string> names;
  if (root.contains("parameters"))
    for (const auto& [name, values] : root["parameters"].items()) {
      TunableParameter parameter{name, {}};
      const std::string pointer = "/parameters/" + pointer_part(name);
      for (const auto& value : values) {
        std::string text = text_of(value);
        if (std::find(parameter.values.begin(), parameter.values.end(), text) != parameter.values.end())
          return fail(make_error(ErrorKind::contract, "parameter {} lists {} twice", name, text)
                          .at(document.place_of(fmt::format("{}/{}", pointer, parameter.values.size()))));
        parameter.values.push_back(std::move(text));
      }
      names.push_back(name);
      candidate.parameters.push_back(std::move(parameter));
    }
  // JSON objects sort their keys; the order written is that of the places.
  auto line_of = [&](const TunableParameter& parameter) {
    const Place place = document.place_of("/parameters/" + pointer_part(parameter.name));
    return std::pair(place.line, place.column);
  };
  std::stable_sort(candidate.parameters.begin(), candidate.parameters.end(),
                   [&](const auto& a, const auto& b) { return line_of(a) < line_of(b); });

  if (root.contains("constraints"))
    for (std::size_t i = 0; i < root["constraints"].size(); ++i) {
      const Place place = document.place_of(fmt::format("/constraints/{}", i));
      std::string constraint = root["constraints"][i].get<std::string>();
      auto mentioned = names_in(constraint);
      if (!mentioned) return fail(std::move(mentioned).error().at(place));
      for (const std::string& name : *mentioned) {
        const auto it = std::find_if(candidate.parameters.begin(), candidate.parameters.end(),
                                     [&](const auto& each) { return each.name == name; });
        if (it == candidate.parameters.end()) {
          const std::string near = nearest(name, names);
          return fail(
              make_error(ErrorKind::contract, "constraint `{}` names {}, which is no parameter", constraint, name)
                  .at(place)
                  .with_hint(near.empty() ? "" : fmt::format("did you mean {}?", near)));
        }
        if (!std::all_of(it->values.begin(), it->values.end(),
                         [](const std::string& text) { return as_integer(text).has_value(); }))
          return fail(make_error(ErrorKind::contract, "constraint `{}` uses {}, whose values are not all integers",
                                 constraint, name)
                          .at(place));
      }
      candidate.constraints.push_back(std::move(constraint));
    }

  Parameters fixed;
  if (root.contains("values"))
    for (const auto& [name, value] : root["values"].items()) {
      const Place place = document.place_of("/values/" + pointer_part(name));
      const auto it = std::find_if(candidate.parameters.begin(), candidate.parameters.end(),
                                   [&, &key = name](const auto& each) { return each.name == key; });
      if (it == candidate.parameters.end()) {
        const std::string near = nearest(name, names);
        return fail(make_error(ErrorKind::contract, "values: {} is no parameter", name)
                        .at(place)
                        .with_hint(near.empty() ? "" : fmt::format("did you mean {}?", near)));
      }
      const std::string text = text_of(value);
      if (std::find(it->values.begin(), it->values.end(), text) == it->values.end())
        return fail(make_error(ErrorKind::contract, "values: {} is {}, which its list does not hold", name, text)
                        .at(place)
                        .with_hint(fmt::format("it lists {}", fmt::join(it->values, ", "))));
      fixed[name] = text;
    }
  auto values = default_values(candidate, fixed);
  if (!values) {
    Error error = std::move(values).error();
    return fail(std::move(error).at(document.place_of("/constraints")));
  }
  candidate.values = *std::move(values);
  return {};
}

Error no_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<std::string> siblings;
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  for (fs::directory_iterator it(parent, code), end; !code && it != end && siblings.size() < 1000; it.increment(code))
    if (it->is_directory(code)) siblings.push_back(it->path().filename().string());
  std::sort(siblings.begin(), siblings.end());
  const bool file = fs::exists(folder, code);
  Error error = file ? make_error(ErrorKind::not_found, "{} is a file; a candidate is a folder with kernel.cpp and plan.cpp", folder.string())
                     : make_error(ErrorKind::not_found, "there is no candidate folder {}", folder.string());
  error.place.file = folder.string();
  if (file && folder.extension() == ".json") error.hint = "a receipt is given as `hone frontier add CANDIDATE --receipt FILE`, or judged again by `hone verify FILE`";
  if (file) return error;
  const std::string name = folder.string();
  if (name.size() >= 8 && name.size() <= 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos)
    error.hint = "a receipt's id is given as `hone frontier add CANDIDATE --receipt ID`, or judged again by `hone verify ID`";
  if (const std::string near = nearest(folder.filename().string(), siblings); !near.empty())
    error.hint =
        fmt::format("did you mean {}?", folder.has_parent_path() ? (folder.parent_path() / near).string() : near);
  return error;
}

bool whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && std::to_string(value) == text;
}

std::string yaml_value(const std::string& text) { return whole_number(text) ? text : nlohmann::json(text).dump(); }

}  // namespace

Result<Candidate> load_candidate(const fs::path& given) {
  std::error_code code;
  fs::path folder = given.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();   // "name/"
  if (!fs::is_directory(folder, code)) return fail(no_folder(folder));
  HONE_TRY(SourceTree files, read_tree(folder));
  const fs::path path = fs::absolute(folder, code).lexically_normal();
  HONE_TRY(Candidate candidate,
           candidate_from_files(path.has_filename() ? path.filename().string() : path.parent_path().filename().string(),
                                std::move(files), folder));
  candidate.path = path;
  return candidate;
}

Result<Candidate> candidate_from_files(const std::string& name, SourceTree files, const fs::path& folder) {
  Candidate candidate;
  candidate.name = name;
  candidate.sources = std::move(files);
  auto take = [&](const char* file) {
    const auto it = candidate.sources.find(file);
    if (it == candidate.sources.end()) return std::optional<std::string>();
    std::string bytes = std::move(it->second);
    candidate.sources.erase(it);
    return std::optional(std::move(bytes));
  };
  candidate.notes = take("NOTES.md").value_or("");
  if (candidate.sources.contains("kernel.cu") && !candidate.sources.contains("kernel.cpp")) {
    candidate.language = "cuda";
    candidate.compiler = "nvcc";
  }
  if (const auto settings = take("candidate.yaml")) {
    HONE_TRY(const YamlDocument document, parse_yaml(*settings, (folder / "candidate.yaml").string()));
    HONE_CHECK(read_settings(document, candidate));
  }
  const char* kernel = candidate.is_cuda() ? "kernel.cu" : "kernel.cpp";
  for (const char* needed : {kernel, "plan.cpp"})
    if (!candidate.sources.contains(needed))
      return fail(make_error(ErrorKind::contract, "candidate {} has no {}", candidate.name, needed)
                      .at({(folder / needed).string()})
                      .with_hint("a candidate is a folder with kernel.cpp (CUDA: kernel.cu) and plan.cpp; docs/candidate.md shows one"));
  candidate.sha256 = hash_of_candidate(candidate);
  return candidate;
}

Result<Candidate> Candidate::with(const Parameters& changed) const {
  Candidate out = *this;
  for (const auto& [key, value] : changed) {
    const auto it = std::find_if(parameters.begin(), parameters.end(),
                                 [&, &wanted = key](const auto& each) { return each.name == wanted; });
    if (it == parameters.end()) return fail(ErrorKind::contract, "candidate {} has no parameter {}", name, key);
    if (std::find(it->values.begin(), it->values.end(), value) == it->values.end())
      return fail(ErrorKind::contract, "parameter {} of {} does not list {}; it lists {}", key, name, value,
                  fmt::join(it->values, ", "));
    out.values[key] = value;
  }
  HONE_TRY(const std::string broken, broken_constraint(*this, out.values));
  if (!broken.empty()) return fail(ErrorKind::contract, "the configuration breaks `{}` of candidate {}", broken, name);
  out.sha256 = hash_of_candidate(out);
  return out;
}

SourceTree frozen_files(const Candidate& candidate) {
  SourceTree files = candidate.sources;
  std::string settings = fmt::format("# Frozen by hone: the configuration that the receipt measured.\nlanguage: {}\ncompiler: {}\n",
                                     yaml_value(candidate.language), yaml_value(candidate.compiler));
  if (!candidate.flags.empty()) settings += "flags: " + nlohmann::json(candidate.flags).dump() + "\n";
  if (!candidate.values.empty()) {
    settings += "parameters:\n";
    // In the order of the original: it is part of what a plan sees.
    for (const TunableParameter& each : candidate.parameters)
      if (const auto value = candidate.values.find(each.name); value != candidate.values.end())
        settings += fmt::format("  {}: [{}]\n", each.name, yaml_value(value->second));
  }
  files["candidate.yaml"] = settings;
  if (!candidate.notes.empty()) files["NOTES.md"] = candidate.notes;
  return files;
}

}  // namespace hone
