// The service over HTTP: one table of routes, from which the OpenAPI document is made too.
#ifndef HONE_SERVER_API_H
#define HONE_SERVER_API_H

#include "server/http.h"
#include "server/service.h"

namespace hone::server {

// Handlers of a service, which must outlive them.
HttpApi make_api(Service& service, Log& log);

// OpenAPI 3.0 of the same routes. `tokens`: they are wanted; `exec`: jobs of that kind are taken.
nlohmann::json openapi(const std::string& version, bool tokens, bool exec);

// The document's half of a route.
struct Route {
  const char* method;
  const char* path;                        // "/v1/jobs/{id}"
  const char* operation;                   // JSON of an OpenAPI operation, without common errors and security
  bool open = false;                       // needs no token
};
const std::vector<Route>& routes();

}  // namespace hone::server

#endif
