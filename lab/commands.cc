#include "lab/commands.h"

#include "base/build_facts.h"
#include "client/cli/program.h"
#include "lab/verbs.h"

namespace ag {
namespace {

constexpr char kLabFooter[] =
    "Exit codes: 0 done; 1 a rule of the file is unknown; 2 wrong command line; 3 a file is "
    "wrong;\n"
    "5 a bug of ours; 130 interrupted.";

struct LabFlags {
  CommonFlags common{.program = "autograph-lab"};
  GenerateFlags generate;
  TasoFlags taso;
  WalkFlags walk;
};

CLI::App* AddVerb(CLI::App& app, const char* name, const char* help, Action* chosen,
                  const Action& action) {
  CLI::App* verb = app.add_subcommand(name, help);
  verb->fallthrough();
  verb->callback([chosen, action] { *chosen = action; });
  return verb;
}

void AddGenerate(CLI::App& app, GenerateFlags& flags, Action* chosen) {
  CLI::App* verb = AddVerb(app, "generate", "Find rules: enumerate small graphs, prove the equal",
                           chosen, [&flags](Context& c) { return RunGenerate(c, flags); });
  verb->add_option("-o,--output", flags.output, "The rules file to write")->required();
  verb->add_option("--max-ops", flags.ops_max, "Operators of a graph, 1 to 4")
      ->check(CLI::Range(1, 4));
  verb->add_option("--ops", flags.ops, "Only these operators: add,relu,concat")
      ->default_str("all it has")
      ->delimiter(',');
  verb->add_option("--seed", flags.seed, "Seed of the values");
  verb->add_option("--proofs", flags.proofs, "Proofs of each rule, with different seeds")
      ->check(CLI::Range(1, 1000));
}

void AddTaso(CLI::App& app, TasoFlags& flags, Action* chosen) {
  CLI::App* coverage = AddVerb(app, "coverage", "What our rules make of a file of TASO's rules",
                               chosen, [&flags](Context& c) { return RunCoverage(c, flags); });
  coverage->add_option("file", flags.file, "A file in TASO's format (.pb)")->required();
  coverage->add_option("--rules", flags.rules, "A rules file")->default_str("the built-in ones");
  coverage->add_option("--steps", flags.steps, "Our rules, one after another, at most")
      ->check(CLI::Range(0, 6));
  coverage->add_option("--seed", flags.seed, "Seed of the shapes");
  CLI::App* load = AddVerb(app, "import", "Write TASO's rules in our language, guarded and proved",
                           chosen, [&flags](Context& c) { return RunImport(c, flags); });
  load->add_option("file", flags.file, "A file in TASO's format (.pb)")->required();
  load->add_option("-o,--output", flags.output, "The rules file to write")->required();
  load->add_option("--instances", flags.instances, "Instances per proof");
  load->add_option("--seed", flags.seed, "Seed of the instances");
}

void AddWalk(CLI::App& app, WalkFlags& flags, Action* chosen) {
  CLI::App* verb = AddVerb(app, "walk", "Rewrite the models of a folder at random", chosen,
                           [&flags](Context& c) { return RunWalk(c, flags); });
  verb->add_option("folder", flags.folder, "NAME.onnx becomes NAME.rewritten or NAME.refused")
      ->required();
  verb->add_option("--steps", flags.steps, "Rewrites, one after another, at most")
      ->check(CLI::Range(0, 1000));
  verb->add_option("--seed", flags.seed, "Seed of the rules and places");
}

}  // namespace

int LabMain(int argc, char** argv) {
  LabFlags flags;
  Action chosen;
  CLI::App app("Tools for people who write rules.", flags.common.program);
  ShowDefaults(app);
  app.set_version_flag("--version", BuildFacts(flags.common.program));
  app.require_subcommand(1);
  app.footer(kLabFooter);
  app.fallthrough();
  app.add_flag("--json", flags.common.json, "Print one JSON document and nothing else");
  AddGenerate(app, flags.generate, &chosen);
  AddTaso(app, flags.taso, &chosen);
  AddWalk(app, flags.walk, &chosen);
  return RunProgram(app, flags.common, chosen, argc, argv);
}

}  // namespace ag
