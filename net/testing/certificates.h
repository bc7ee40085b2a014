// A certificate authority for tests, with keys that are made when the test runs. One thread at a
// time; an error stops the process.
#pragma once

#include <memory>
#include <string>

#include "net/tls.h"

namespace ag {

class TestAuthority {
 public:
  // Writes FOLDER/NAME-ca.crt.
  TestAuthority(const std::string& folder, const std::string& name);
  ~TestAuthority();

  const std::string& ca() const { return ca_; }  // The path of its certificate.

  struct Validity {
    long begins_in_seconds = -3600;
    long ends_in_seconds = 3600;
  };
  static constexpr Validity kExpired = {-7200, -3600};
  static constexpr Validity kNotYet = {3600, 7200};
  // Writes FOLDER/NAME.crt and FOLDER/NAME.key, for localhost and 127.0.0.1, and replaces those
  // that are there. Returns them with the authority itself as `ca`.
  TlsFiles Make(const std::string& name, const Validity& validity);
  TlsFiles Make(const std::string& name) { return Make(name, Validity()); }

 private:
  struct State;
  const std::string folder_;
  const std::string ca_;
  std::unique_ptr<State> state_;
};

}  // namespace ag
