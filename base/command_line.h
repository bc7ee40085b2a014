// What every program of ours says of a wrong command line: one line that names the word which was
// meant, and exit code 2. A header alone, because CLI11 takes 10 s to compile: it is included where
// a program builds its CLI::App, which includes CLI11 anyway.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"

namespace ag {

inline constexpr int kWrongCommandLine = 2;

// --- Checks of values, for CLI::Option::check: what is wrong with the text, or "".

inline std::string WrongAmount(const std::string& text) {
  const auto value = ParseDouble(text);
  return value.ok() && *value > 0 ? "" : fmt::format("\"{}\" is not a number above 0", text);
}

inline std::string WrongTime(const std::string& text) {
  const auto value = ParseDouble(text);
  return value.ok() && *value >= 0 ? "" : fmt::format("\"{}\" is not a number of 0 or more", text);
}

// A check for one of these words.
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

// --- What is wrong

namespace command_line {

inline std::vector<std::string> VerbsOf(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(sub->get_name());
  }
  return verbs;
}

// "--flag" of "--flag=value", "-f" of "-fvalue".
inline std::string FlagOf(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

// The flag of `verb` or of the whole that `word` names; null: none.
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

// What is wrong with the flag, and which one may have been meant.
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

// The first word that names no verb and no flag, with the one that was meant; "": there is none.
inline std::string UnknownWord(const CLI::App& whole, const std::vector<std::string>& words) {
  const CLI::App* at = &whole;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("-") && word.size() > 1) {
      const CLI::Option* flag = FindFlag(whole, *at, word);
      if (flag == nullptr) return UnknownFlag(whole, *at, word);
      // Its value is the next word, unless this one holds it.
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

// What `error`, thrown when `whole` parsed `words` (without the program's name), comes from.
inline std::string WhatIsWrong(const CLI::App& whole, const CLI::ParseError& error,
                               const std::vector<std::string>& words) {
  // A value that is wrong is no typo in a name.
  const bool wrong_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                           dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
  const std::string message = wrong_value ? "" : command_line::UnknownWord(whole, words);
  return message.empty() ? error.what() : message;
}

// Parses; returns the exit code when the program is to end: 0 after --help and --version, which are
// printed, and kWrongCommandLine after a message, which `on_error` hears as well. -1: it goes on.
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
