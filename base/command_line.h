// Parsing of a program's command line, with the same errors in every program: one line that
// suggests the word that was probably meant, and exit code 2. Header-only, because CLI11 takes 10 s
// to compile and only the file that builds the CLI::App needs it. Not thread-safe: called by main.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/text.h"

namespace ag {

inline constexpr int kWrongCommandLine = 2;

// --- Checks of values, for CLI::Option::check. Each returns the error's text; "": the value is
// good.

inline std::string WrongAmount(const std::string& text) {
  const auto value = ParseDouble(text);
  return value.ok() && *value > 0 ? "" : fmt::format("\"{}\" is not a number above 0", text);
}

inline std::string WrongNumber(const std::string& text) {
  const auto value = ParseDouble(text);
  return value.ok() && *value >= 0 ? "" : fmt::format("\"{}\" is not a number of 0 or more", text);
}

// Returns a check that the value is one of `words`.
inline std::function<std::string(const std::string&)> OneOf(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    return fmt::format("\"{}\" is none of {}{}", text, Join(words, ", "), DidYouMean(text, words));
  };
}

// --- Help

// Shows the default of each value, as "--rounds INT [4]".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0) {
      text += " " + option->get_type_name();
      const std::string otherwise = option->get_default_str();
      if (!otherwise.empty()) text += fmt::format(" [{}]", otherwise);
      if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
      if (option->get_required()) text += " REQUIRED";
    }
    if (!option->get_envname().empty()) text += fmt::format(" (Env:{})", option->get_envname());
    return text;
  }
};

// Makes the help of `app`, and of verbs that are added later, show every option's default. Call it
// before the first option is added.
inline void ShowDefaults(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->always_capture_default();
}

// --- Variables

// Gives every flag of `app` that has none an environment variable: --job-memory has
// AUTOGRAPH_JOB_MEMORY. A word on the command line counts before it. Call it after the last option
// was added.
inline void NameVariables(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || !option->get_envname().empty()) continue;
    const std::string name = option->get_lnames()[0];
    if (name == "help" || name == "version") continue;
    std::string variable = "AUTOGRAPH_" + name;
    for (char& c : variable) {
      c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    option->envname(variable);
  }
}

// --- Errors

namespace command_line {

inline std::vector<std::string> VerbsOf(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(sub->get_name());
  }
  return verbs;
}

// Returns "--flag" for "--flag=value" and "-f" for "-fvalue".
inline std::string FlagOf(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

// Returns the flag of `verb` or of `whole` that `word` names; null: none.
inline const CLI::Option* FindFlag(const CLI::App& whole, const CLI::App& verb,
                                   const std::string& word) {
  const std::string name = FlagOf(word);
  for (const CLI::App* place : {&verb, &whole}) {
    for (const CLI::Option* option : place->get_options()) {
      if (!option->get_positional() && option->check_name(name)) return option;
    }
  }
  return nullptr;
}

// Returns the error text for an unknown flag, with a suggestion.
inline std::string UnknownFlag(const CLI::App& whole, const CLI::App& verb,
                               const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* place : {&verb, &whole}) {
    for (const CLI::Option* option : place->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::string flag = FlagOf(word);
  return fmt::format("unknown flag {}{}", flag, DidYouMean(flag, names));
}

// Returns the error text for the first unknown verb or flag, with a suggestion, or for a missing
// verb. "": all words are known.
inline std::string UnknownWord(const CLI::App& whole, const std::vector<std::string>& words) {
  const CLI::App* at = &whole;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("-") && word.size() > 1) {
      const CLI::Option* flag = FindFlag(whole, *at, word);
      if (flag == nullptr) return UnknownFlag(whole, *at, word);
      // The next word is the flag's value, unless this word holds it.
      if (FlagOf(word) == word && flag->get_items_expected_min() > 0) ++i;
      continue;
    }
    const std::vector<std::string> verbs = VerbsOf(*at);
    if (verbs.empty()) continue;
    if (std::ranges::find(verbs, word) == verbs.end()) {
      return fmt::format("unknown verb \"{}\"{}", word, DidYouMean(word, verbs));
    }
    at = at->get_subcommand(word);
  }
  const std::vector<std::string> verbs = VerbsOf(*at);
  return verbs.empty() ? "" : fmt::format("a verb is missing: {}", Join(verbs, ", "));
}

}  // namespace command_line

// Returns the text for `error`, which CLI11 threw when `whole` parsed `words` (the command line
// without the program's name). Misspelt verbs and flags produce a suggestion.
inline std::string WhatIsWrong(const CLI::App& whole, const CLI::ParseError& error,
                               const std::vector<std::string>& words) {
  // A wrong value is not a misspelt name.
  const bool wrong_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                           dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
  const std::string message = wrong_value ? "" : command_line::UnknownWord(whole, words);
  return message.empty() ? error.what() : message;
}

// Parses the command line. Returns -1 when the program continues, else its exit code: 0 after
// --help and --version, which are printed; kWrongCommandLine after an error, which is printed and
// passed to `on_error`.
inline int ParseCommandLine(CLI::App& app, int argc, char** argv,
                            const std::function<void(const std::string&)>& on_error = nullptr) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string message = WhatIsWrong(app, error, words);
    std::fprintf(stderr, "%s: %s\nTry %s --help.\n", app.get_name().c_str(), message.c_str(),
                 app.get_name().c_str());
    if (on_error) on_error(message);
    return kWrongCommandLine;
  }
  return -1;
}

}  // namespace ag
