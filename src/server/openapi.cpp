#include <nlohmann/json.hpp>

#include "base/fs.h"
#include "server/api.h"

namespace hone::server {
namespace {

using nlohmann::json;

// Schemas that the operations name; those of requests come from share/schema/job.json.
constexpr const char* kSchemas = R"({
  "Error": {"type": "object", "required": ["schema", "error", "request_id"], "properties": {
    "schema": {"type": "string", "enum": ["hone.error/1"]}, "request_id": {"type": "string"},
    "error": {"type": "object", "required": ["kind", "message"], "properties": {
      "kind": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string", "nullable": true},
      "place": {"type": "object", "nullable": true}, "notes": {"type": "array", "items": {"type": "string"}}}}}},
  "Event": {"type": "object", "required": ["n", "time", "name", "data"], "properties": {
    "n": {"type": "integer"}, "time": {"type": "string"}, "name": {"type": "string"}, "data": {"type": "object"}}},
  "Job": {"type": "object", "required": ["schema", "id", "kind", "state", "queued_s", "ran_s", "result"], "properties": {
    "schema": {"type": "string", "enum": ["hone.job/1"]}, "id": {"type": "string"}, "kind": {"type": "string"},
    "state": {"type": "string", "enum": ["queued", "running", "done", "cancelled"]}, "priority": {"type": "integer"},
    "accepted": {"type": "string"}, "started": {"type": "string", "nullable": true}, "ended": {"type": "string", "nullable": true},
    "queued_s": {"type": "number"}, "ran_s": {"type": "number"}, "leases": {"type": "integer"}, "cancel_asked": {"type": "boolean"},
    "ahead": {"type": "integer", "nullable": true}, "result": {"type": "object", "nullable": true},
    "events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}}},
  "Jobs": {"type": "object", "required": ["schema", "jobs"], "properties": {
    "schema": {"type": "string", "enum": ["hone.jobs/1"]}, "jobs": {"type": "array", "items": {"type": "object"}}}},
  "Health": {"type": "object", "required": ["schema", "ok", "reasons", "version", "devices", "compilers", "queue"], "properties": {
    "schema": {"type": "string", "enum": ["hone.health/1"]}, "ok": {"type": "boolean"}, "version": {"type": "string"},
    "reasons": {"type": "array", "items": {"type": "object"}}, "devices": {"type": "array", "items": {"type": "object"}},
    "compilers": {"type": "array", "items": {"type": "object"}},
    "queue": {"type": "object"}}},
  "Task": {"type": "object", "required": ["name", "sha256", "device", "workloads"], "properties": {
    "name": {"type": "string"}, "sha256": {"type": "string"}, "device": {"type": "string"}, "summary": {"type": "string"},
    "workloads": {"type": "array", "items": {"type": "string"}}}},
  "Tasks": {"type": "object", "required": ["schema", "tasks"], "properties": {
    "schema": {"type": "string", "enum": ["hone.tasks/1"]}, "tasks": {"type": "array", "items": {"$ref": "#/components/schemas/Task"}}}},
  "Blob": {"type": "object", "required": ["sha256", "bytes"], "properties": {"sha256": {"type": "string"}, "bytes": {"type": "integer"}}}
})";

json answer(const char* description, const char* schema) {
  return {{"description", description}, {"content", {{"application/json", {{"schema", {{"$ref", std::string("#/components/schemas/") + schema}}}}}}}};
}

// References of a JSON schema of ours as OpenAPI wants them.
void move_references(json& value) {
  if (value.is_object()) {
    if (const auto reference = value.find("$ref"); reference != value.end() && reference->is_string()) {
      const std::string text = reference->get<std::string>(), prefix = "#/definitions/";
      if (text.starts_with(prefix)) *reference = "#/components/schemas/" + text.substr(prefix.size());
    }
    for (auto& [key, each] : value.items()) move_references(each);
  } else if (value.is_array()) {
    for (json& each : value) move_references(each);
  }
}

// draft 7's {"exclusiveMinimum": 0} is OpenAPI 3.0's {"minimum": 0, "exclusiveMinimum": true}.
void old_bounds(json& value) {
  if (value.is_object()) {
    if (const auto bound = value.find("exclusiveMinimum"); bound != value.end() && bound->is_number()) {
      value["minimum"] = *bound;
      value["exclusiveMinimum"] = true;
    }
    for (auto& [key, each] : value.items()) old_bounds(each);
  } else if (value.is_array()) {
    for (json& each : value) old_bounds(each);
  }
}

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> table = {
      {"GET", "/health", R"({"summary": "whether a job could run now, and what there is", "operationId": "health", "responses": {
          "200": {"$schema": "Health", "description": "a job could run"}, "503": {"$schema": "Health", "description": "it could not; reasons say why"}}})", true},
      {"GET", "/openapi.json", R"({"summary": "this document", "operationId": "openapi", "responses": {
          "200": {"description": "OpenAPI 3.0", "content": {"application/json": {"schema": {"type": "object"}}}}}})", true},
      {"GET", "/metrics", R"({"summary": "Prometheus metrics", "operationId": "metrics", "responses": {
          "200": {"description": "text format 0.0.4", "content": {"text/plain": {"schema": {"type": "string"}}}}}})"},
      {"GET", "/v1/tasks", R"({"summary": "the service's tasks", "operationId": "tasks", "responses": {
          "200": {"$schema": "Tasks", "description": "all of them"}}})"},
      {"GET", "/v1/tasks/{name}", R"({"summary": "one task", "operationId": "task", "parameters": [
          {"name": "name", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"}}], "responses": {
          "200": {"$schema": "Task", "description": "its identity"}, "404": {"$schema": "Error", "description": "no such task"}}})"},
      {"POST", "/v1/jobs", R"({"summary": "accepts a job: it will end exactly once", "operationId": "submit", "parameters": [
          {"name": "Idempotency-Key", "in": "header", "required": false, "description": "the same key and request is the same job", "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}}],
          "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/job"}}}}, "responses": {
          "200": {"$schema": "Job", "description": "the key was known: the job of then"}, "202": {"$schema": "Job", "description": "accepted, on disk"},
          "404": {"$schema": "Error", "description": "a blob is not here"}, "409": {"$schema": "Error", "description": "the key belongs to another request"},
          "413": {"$schema": "Error", "description": "too large"}, "501": {"$schema": "Error", "description": "jobs of this kind are not done here"}, "415": {"$schema": "Error", "description": "not JSON"}}})"},
      {"GET", "/v1/jobs", R"({"summary": "this token's jobs, latest first", "operationId": "jobs", "parameters": [
          {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50}},
          {"name": "before", "in": "query", "description": "a job's number", "schema": {"type": "integer", "minimum": 1, "maximum": 9007199254740992}}], "responses": {
          "200": {"$schema": "Jobs", "description": "without results"}}})"},
      {"GET", "/v1/jobs/{id}", R"({"summary": "a job; with wait, when it has ended or has news", "operationId": "job", "parameters": [
          {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^j-[0-9a-f]{16}$"}},
          {"name": "wait", "in": "query", "description": "seconds", "schema": {"type": "number", "minimum": 0, "maximum": 60}},
          {"name": "after", "in": "query", "description": "with the events after this one; waiting ends when there is one", "schema": {"type": "integer", "minimum": 0, "maximum": 9007199254740992}}], "responses": {
          "200": {"$schema": "Job", "description": "as it is"}, "404": {"$schema": "Error", "description": "no such job of this token"}}})"},
      {"POST", "/v1/jobs/{id}/cancel", R"({"summary": "asks that a job end", "operationId": "cancel", "parameters": [
          {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^j-[0-9a-f]{16}$"}}], "responses": {
          "200": {"$schema": "Job", "description": "as it is; one that runs ends soon"}, "404": {"$schema": "Error", "description": "no such job of this token"}}})"},
      {"GET", "/v1/jobs/{id}/events", R"({"summary": "a job's events as server-sent events, until it ends", "operationId": "events", "parameters": [
          {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^j-[0-9a-f]{16}$"}},
          {"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 9007199254740992}}], "responses": {
          "200": {"description": "id, event and data of each", "content": {"text/event-stream": {"schema": {"type": "object", "required": ["id", "event", "data"], "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}}}}}},
          "404": {"$schema": "Error", "description": "no such job of this token"}}})"},
      {"GET", "/v1/jobs/{id}/artifacts/{name}", R"({"summary": "result.json, receipt.json, or trace.json for Chrome's tracing", "operationId": "artifact", "parameters": [
          {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^j-[0-9a-f]{16}$"}},
          {"name": "name", "in": "path", "required": true, "schema": {"type": "string", "enum": ["result.json", "receipt.json", "trace.json"]}}], "responses": {
          "200": {"description": "it", "content": {"application/json": {"schema": {"type": "object"}}}},
          "404": {"$schema": "Error", "description": "not there, or not yet"}}})"},
      {"PUT", "/v1/blobs/{sha256}", R"({"summary": "keeps bytes under their hash", "operationId": "put_blob", "parameters": [
          {"name": "sha256", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}],
          "requestBody": {"required": true, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}, "responses": {
          "200": {"$schema": "Blob", "description": "it was here"}, "201": {"$schema": "Blob", "description": "kept, on disk"},
          "404": {"$schema": "Error", "description": "that is no hash"},
          "409": {"$schema": "Error", "description": "the bytes have another hash"}, "411": {"$schema": "Error", "description": "its length must be told"}, "413": {"$schema": "Error", "description": "too large"}}})"},
      {"GET", "/v1/blobs/{sha256}", R"({"summary": "a blob that this token has put", "operationId": "blob", "parameters": [
          {"name": "sha256", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}], "responses": {
          "200": {"description": "its bytes", "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
          "404": {"$schema": "Error", "description": "no such blob of this token"}}})"},
  };
  return table;
}

json openapi(const std::string& version, bool tokens, bool exec) {
  json schemas = json::parse(kSchemas);
  if (const auto share = share_dir())
    if (const auto text = read_file(*share / "schema" / "job.json")) {
      json job = json::parse(*text);
      for (auto& [name, schema] : job["definitions"].items()) schemas[name] = schema;
      for (const char* key : {"definitions", "$schema"}) job.erase(key);
      // A kind and its own request; other kinds are answered 501.
      json kinds = json::array();
      for (const char* kind : {"bench", "compile", "inspect", "profile", "sanitize", "exec"}) {
        if (kind == std::string_view("exec") && !exec) continue;
        json one = job;
        one["title"] = std::string("a job of kind ") + kind;
        one["properties"]["kind"] = {{"type", "string"}, {"enum", {kind}}};
        one["properties"]["request"] = {{"$ref", std::string("#/definitions/") + kind}};
        kinds.push_back(std::move(one));
      }
      schemas["job"] = {{"oneOf", std::move(kinds)}};
    }
  move_references(schemas);
  old_bounds(schemas);
  json paths = json::object();
  for (const Route& route : routes()) {
    json operation = json::parse(route.operation);
    for (auto& [status, response] : operation["responses"].items())
      if (response.contains("$schema")) response = answer(response["description"].get<std::string>().c_str(), response["$schema"].get<std::string>().c_str());
    json& responses = operation["responses"];
    responses["400"] = answer("the request is wrong; the error says where", "Error");
    responses["431"] = answer("the head is too large", "Error");
    if (!responses.contains("503")) responses["503"] = answer("not now: Retry-After says when", "Error");
    if (!route.open) {
      responses["401"] = answer("no token, or none that is good", "Error");
      responses["403"] = answer("the token has not the scope", "Error");
      responses["429"] = answer("a quota is used up: Retry-After says when", "Error");
      if (tokens) operation["security"] = json::array({json{{"token", json::array()}}});
    }
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    paths[route.path][method] = std::move(operation);
  }
  json out = {{"openapi", "3.0.3"},
              {"info", {{"title", "Hone evaluation service"}, {"version", version},
                        {"description", "Judges kernels on the devices that it owns. See docs/service.md."}}},
              {"paths", std::move(paths)},
              {"components", {{"schemas", std::move(schemas)}}}};
  if (tokens) out["components"]["securitySchemes"] = {{"token", {{"type", "http"}, {"scheme", "bearer"}}}};
  return out;
}

}  // namespace hone::server
