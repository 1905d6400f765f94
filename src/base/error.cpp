#include "base/error.h"

#include <array>
#include <nlohmann/json.hpp>

namespace hone {
namespace {

struct KindRow {
  ErrorKind kind;
  std::string_view name;
  int exit_code;
};

constexpr std::array kKinds = {
#define HONE_KIND_ROW(name, code, text) KindRow{ErrorKind::name, #name, code},
    HONE_ERROR_KINDS(HONE_KIND_ROW)
#undef HONE_KIND_ROW
};

const KindRow& row(ErrorKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view name_of(ErrorKind kind) { return row(kind).name; }

int exit_code_of(ErrorKind kind) { return row(kind).exit_code; }

ErrorKind error_kind_from(std::string_view name) {
  for (const KindRow& each : kKinds)
    if (each.name == name) return each.kind;
  return ErrorKind::internal;
}

std::string to_text(const Error& error) {
  std::string text;
  if (!error.place.file.empty()) {
    text += error.place.file;
    if (error.place.line > 0) text += fmt::format(":{}", error.place.line);
    if (error.place.line > 0 && error.place.column > 0) text += fmt::format(":{}", error.place.column);
    text += ": ";
  }
  text += fmt::format("error({}): {}", name_of(error.kind), error.message);
  if (!error.hint.empty()) text += fmt::format("\n  hint: {}", error.hint);
  for (const std::string& note : error.notes) text += fmt::format("\n  {}", note);
  return text;
}

void to_json(nlohmann::json& out, const Error& error) {
  out = {{"kind", name_of(error.kind)}, {"message", error.message}, {"place", nullptr}, {"hint", nullptr}};
  if (!error.place.file.empty())
    out["place"] = {{"file", error.place.file}, {"line", error.place.line}, {"column", error.place.column}};
  if (!error.hint.empty()) out["hint"] = error.hint;
  if (!error.notes.empty()) out["notes"] = error.notes;
}

void from_json(const nlohmann::json& in, Error& error) {
  error = {};
  error.kind = error_kind_from(in.at("kind").get<std::string>());
  error.message = in.at("message").get<std::string>();
  if (in.contains("place") && in["place"].is_object()) {
    error.place.file = in["place"].value("file", "");
    error.place.line = in["place"].value("line", 0);
    error.place.column = in["place"].value("column", 0);
  }
  if (in.contains("hint") && in["hint"].is_string()) error.hint = in["hint"].get<std::string>();
  if (in.contains("notes")) error.notes = in["notes"].get<std::vector<std::string>>();
}

}  // namespace hone
