// The flags of a program that connects to a coordinator. Header-only, because CLI11 takes 10 s to
// compile. Not thread-safe: called by main.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "net/channel.h"

namespace ag {

// Adds --tls-ca, --tls-cert, --tls-key, --token-file and --insecure. A token itself comes from the
// variable AUTOGRAPH_TOKEN alone: command lines can be read by everybody on the machine.
inline void AddChannelFlags(CLI::App& app, ChannelOptions& options) {
  const auto add = [&app](const char* flag, auto& value, const char* variable, const char* help) {
    app.add_option(flag, value, help)->envname(variable)->default_str("none")->group("Connection");
  };
  add("--tls-ca", options.tls.ca, "AUTOGRAPH_TLS_CA",
      "PEM file with what signed the server's certificate; switches TLS on");
  add("--tls-cert", options.tls.cert, "AUTOGRAPH_TLS_CERT",
      "PEM file with the own certificate, for a server that wants one");
  add("--tls-key", options.tls.key, "AUTOGRAPH_TLS_KEY", "PEM file with its private key");
  add("--token-file", options.token_file, "AUTOGRAPH_TOKEN_FILE",
      "File with the token; without it the variable AUTOGRAPH_TOKEN has the token itself");
  app.add_flag("--insecure", options.insecure,
               "Send the token to another machine in plain text, where there is no TLS")
      ->group("Connection");
}

// Takes the token from AUTOGRAPH_TOKEN unless a file was named. Call it after the flags were
// parsed.
inline void TakeTokenOfEnvironment(ChannelOptions& options) {
  const char* token = std::getenv("AUTOGRAPH_TOKEN");
  if (options.token_file.empty() && token != nullptr) options.token = token;
}

}  // namespace ag
