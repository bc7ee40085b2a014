// Whose jobs and blobs a call may see (docs/security.md, "Tenants"). Plain data.
#pragma once

#include <string>

namespace ag {

struct Tenant {
  std::string name;      // Of the caller's token; "": the server asks for no tokens.
  bool sees_all = true;  // An administrator, a worker, or anybody where there are no tokens.

  bool Sees(const std::string& tenant) const { return sees_all || tenant == name; }
};

}  // namespace ag
