#include "client/cli/commands.h"

#include <string>

#include "base/build_facts.h"
#include "base/text.h"
#include "client/cli/program.h"
#include "client/cli/verbs.h"
#include "device/api/device_name.h"
#include "net/address.h"
#include "net/channel_flags.h"
#include "search/search.h"

namespace ag {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 the answer is no (not equivalent, job failed); 2 wrong command line;\n"
    "3 a file or model is wrong; 4 no server, device, lock or permission; 5 a bug of ours;\n"
    "6 bench --compare: slower; 130 interrupted.";

struct AllFlags {
  CommonFlags common;
  OptimizeFlags optimize;
  RunFlags run;
  VerifyFlags verify;
  BenchFlags bench;
  ZooFlags zoo;
  JobsFlags jobs;
  CacheFlags cache;
  RulesFlags rules;
  PlanShowFlags plan;
  TokenFlags token;
  StoreFlags store;
  ModelFlags doctor;
  std::string health = "ready";  // As Client::Serves has it.
  std::string worker_id;         // To admit.
};

// The type of the field that a setter sets. Declared only.
template <class Message, class Value>
Value FieldOf(void (Message::*setter)(Value));

// Checks for CLI11: each returns what is wrong with the text, or "".
std::string WrongShape(const std::string& text) { return Message(ParseNamedSizes(text).status()); }
std::string WrongDevice(const std::string& text) { return Message(ParseDeviceName(text).status()); }
std::string WrongState(const std::string& text) {
  autograph::v1::Job::State state;
  if (autograph::v1::Job::State_Parse(text, &state)) return "";
  return "\"" + text +
         "\" is no state; try QUEUED, IMPORTING, SEARCHING, CONFIRMING, SUCCEEDED, FAILED or "
         "CANCELLED";
}
std::string WrongServer(const std::string& text) {
  return text.empty() ? "" : WrongServerAddress(text);  // Empty: embedded.
}
std::string WrongDuration(const std::string& text) { return Message(ParseDuration(text).status()); }

// The tree of verbs; each leaf sets `chosen` when it is parsed.
class Commands {
 public:
  Commands();
  int Run(int argc, char** argv) { return RunProgram(app_, flags_.common, chosen_, argc, argv); }

 private:
  CLI::App* Verb(CLI::App* parent, const char* name, const char* help, const Action& action);
  void AddModel(CLI::App* verb, ModelFlags& flags, const char* model_help);
  void AddCommon(CLI::App* verb);
  void AddInputs(CLI::App* verb, ModelFlags& flags, const char* help);
  void AddTune(CLI::App* verb, ModelFlags& flags);
  void AddOrtMode(CLI::App* verb, OrtFlags& flags, const std::string& help);
  void AddOrt(CLI::App* verb, OrtFlags& flags);
  void AddSizesAndInputs(CLI::App* verb, OptimizeFlags& flags);
  void AddSubmission(CLI::App* verb, OptimizeFlags& flags);
  void AddSearch(CLI::App* verb, OptimizeFlags& flags);
  void AddOptimize();
  void AddLocalVerbs();
  void AddBench();
  void AddPlan();
  void AddJobs();
  void AddCache();
  void AddStore();
  void AddRules();
  void AddOthers();

  CLI::App app_{"Makes trained networks faster and proves it.", "autograph"};
  AllFlags flags_;
  Action chosen_;
};

Commands::Commands() {
  ShowDefaults(app_);
  app_.set_version_flag("--version", BuildFacts("autograph"));
  app_.set_config("--config", "", "File with defaults: server=HOST:PORT, data=FOLDER")
      ->default_str("none");
  app_.allow_config_extras(CLI::config_extras_mode::error);  // A misspelt key is an error.
  app_.require_subcommand(1);
  app_.footer(kFooter);
  app_.fallthrough();
  AddCommon(&app_);
  AddOptimize();
  AddLocalVerbs();
  AddBench();
  AddPlan();
  AddJobs();
  AddCache();
  AddStore();
  AddRules();
  AddOthers();
}

CLI::App* Commands::Verb(CLI::App* parent, const char* name, const char* help,
                         const Action& action) {
  CLI::App* verb = parent->add_subcommand(name, help);
  verb->fallthrough();
  if (action) verb->callback([this, action] { chosen_ = action; });
  return verb;
}

void Commands::AddCommon(CLI::App* app) {
  CommonFlags& flags = flags_.common;
  app->add_option("--server", flags.server,
                  "Coordinator, HOST:PORT; without it the service runs embedded")
      ->envname("AUTOGRAPH_SERVER")
      ->check(WrongServer)
      ->default_str("none");
  app->add_option("--data", flags.data_dir, "Folder of the embedded service's cache and jobs")
      ->envname("AUTOGRAPH_DATA")
      ->default_str(DefaultDataDir());
  AddChannelFlags(*app, flags.channel);
  app->add_flag("--json", flags.json, "Print one JSON document and nothing else");
  app->add_flag("-v,--verbose", flags.verbose, "Log what the embedded service does");
}

void Commands::AddModel(CLI::App* verb, ModelFlags& flags, const char* model_help) {
  verb->add_option("model", flags.model, model_help)->required();
  verb->add_option("--device", flags.device, "cpu, cpu:CORES, sim:NAME, sim:FILE.spec, cuda:N")
      ->check(WrongDevice);
  verb->add_option("--shape", flags.shapes, "NAME=1x3x299x299 for an input whose sizes are open")
      ->check(WrongShape)
      ->default_str("the model's");
}

void Commands::AddInputs(CLI::App* verb, ModelFlags& flags, const char* help) {
  verb->add_option("--inputs", flags.inputs, help)->default_str("made by role");
}

void Commands::AddTune(CLI::App* verb, ModelFlags& flags) {
  verb->add_flag("--tune", flags.tune,
                 "Measure every group's kernels first where no plan is carried (up to a minute)");
  verb->add_option("--tuned-plans", flags.tuned_plans,
                   "Folder that remembers what --tune found, or none")
      ->default_str("~/.cache/autograph/tuned-plans");
}

void Commands::AddOrtMode(CLI::App* verb, OrtFlags& flags, const std::string& help) {
  verb->add_option("--ort", flags.mode, help)->check(OneOf({"auto", "off", "require"}));
}

void Commands::AddOrt(CLI::App* verb, OrtFlags& flags) {
  AddOrtMode(
      verb, flags,
      "Times in ONNX Runtime beside ours: auto (when it is installed, on cpu), off, require");
  verb->add_option("--ort-seconds", flags.seconds, "About how long ONNX Runtime is timed")
      ->check(WrongAmount);
}

void Commands::AddSizesAndInputs(CLI::App* verb, OptimizeFlags& flags) {
  verb->add_option("--shape-set", flags.shape_sets,
                   "\"NAME=8x3x48x320 NAME=8x128\": further sizes that get a plan of their own in "
                   "the output; may be repeated")
      ->default_str("none");
  AddInputs(verb, flags.model,
            "Folder of your own inputs, NAME.npy or NAME.pb: compared on first, and timed on");
}

void Commands::AddSubmission(CLI::App* verb, OptimizeFlags& flags) {
  autograph::v1::OptimizeRequest& request = flags.request;
  verb->add_option_function<int>(
          "--priority", [&request](const int& value) { request.set_priority(value); },
          "Among your waiting jobs the highest goes first; -100 to 100")
      ->default_str("0");
  verb->add_flag("--detach", flags.detach,
                 "Submit, print the job's name and leave (needs --server)");
}

void Commands::AddOptimize() {
  OptimizeFlags& flags = flags_.optimize;
  const SearchLimits limits;  // The coordinator takes its defaults.
  CLI::App* verb = Verb(&app_, "optimize", "Find a faster model, prove it equal, write it",
                        [&flags](Context& c) { return RunOptimize(c, flags); });
  AddModel(verb, flags.model, "ONNX file");
  AddSizesAndInputs(verb, flags);
  verb->add_option("-o,--output", flags.output, "Where the answer goes")
      ->default_str("required without --detach");
  verb->add_option("--report", flags.report, "Where the report goes, as JSON")->default_str("none");
  verb->add_flag("--force", flags.force, "The output may be the model itself, which is replaced");
  verb->add_option("--budget", flags.budget,
                   "Wall time of the whole job: 90s, 2m, 1h; counts are the real budget")
      ->check(WrongDuration)
      ->default_str(fmt::format("{}s", limits.time_max / std::chrono::seconds(1)));
  verb->add_option("--precision", flags.precision,
                   "fp32 (tf32, fp16, bf16: with a device that offers them)")
      ->check(OneOf({"fp32", "tf32", "fp16", "bf16"}));
  verb->add_option("--tolerance", flags.tolerance,
                   "Largest |a-b| / max|a| of any output; without it 1e-3, in tf32 5e-3, in fp16 "
                   "1e-2, in bf16 5e-2, also where a model has values of these types")
      ->check(WrongAmount)
      ->default_str("by --precision");
  using Request = autograph::v1::OptimizeRequest;
  // Adds a flag that sets a field of a message.
  const auto flag = [&](const char* name, auto& message, auto set, const char* help) {
    verb->add_flag_function(
        name, [&message, set](int64_t times) { (message.*set)(times > 0); }, help);
  };
  flag("--cold-cache", *flags.request.mutable_policy(), &autograph::v1::Policy::set_cold_cache,
       "Take every time with the device's caches evicted before the run");
  AddSearch(verb, flags);
  flag("--no-cache", flags.request, &Request::set_skip_model_cache,
       "Search again though the answer is known, from nothing that other searches found");
  AddSubmission(verb, flags);
  verb->add_option("--target", flags.target,
                   "device: fastest with its plan; portable: keep only what ONNX Runtime gains by")
      ->check(OneOf({"device", "portable"}));
  verb->add_option_function<int64_t>(
          "--batch", [&flags](const int64_t& batch) { flags.request.set_batch(batch); },
          "Samples of one run, of a model that leaves its batch open")
      ->check(WrongAmount)
      ->default_str("as the model says, 1 where that is open");
  verb->add_option("--objective", flags.objective,
                   "latency: the time of a run; throughput: samples a second, of batches of two or "
                   "more whose samples do not depend on each other")
      ->check(OneOf({"latency", "throughput"}));
  flag("--keep-bytes", flags.request, &Request::set_keep_bytes,
       "When no rewrite wins, write the input's own bytes, without the plan");
  AddOrtMode(
      verb, flags.ort,
      "ONNX Runtime as what is to be beaten: auto (when it is installed beside a cpu worker), "
      "off (our untuned session instead), require");
}

// Adds the parameters of the search.
void Commands::AddSearch(CLI::App* verb, OptimizeFlags& flags) {
  using Budget = autograph::v1::SearchBudget;
  using Request = autograph::v1::OptimizeRequest;
  const SearchOptions options;  // The coordinator takes its defaults.
  const SearchLimits& limits = options.limits;
  Request& request = flags.request;
  Budget& budget = *request.mutable_budget();
  // Adds an option that sets a field of a message.
  const auto field = [&](const char* name, auto& message, auto set, const std::string& otherwise,
                         const char* help) {
    using Value = decltype(FieldOf(set));
    verb->add_option_function<Value>(
            name, [&message, set](const Value& value) { (message.*set)(value); }, help)
        ->check(WrongAmount)
        ->default_str(otherwise);
  };
  verb->add_option("--search", flags.search,
                   "How graphs are searched: ours; paper (AutoGraph, AAAI 2023), paper-without-dp; "
                   "no-rewrites (the best plan for the model's own graph)")
      ->check(OneOf({"ours", "paper", "paper-without-dp", "no-rewrites"}));
  field("--rounds", budget, &Budget::set_rounds, fmt::to_string(limits.rounds_max),
        "Measured rounds; with --search paper until no graph is accepted");
  field("--expansions", budget, &Budget::set_expansions, fmt::to_string(limits.expansions_max),
        "Graphs expanded per round");
  field("--graphs", budget, &Budget::set_graphs, fmt::to_string(limits.graphs_max),
        "Graphs scored per round");
  verb->add_option_function<int>(
          "--stale-graphs", [&budget](const int& n) { budget.set_stale_graphs(n); },
          "Graphs in a row without a smaller estimate that end a round, as three rounds without a "
          "faster plan end the search; 0: neither")
      ->check(WrongNumber)
      ->default_str(fmt::to_string(limits.stale_graphs_max));
  verb->add_option_function<int>(
          "--cell-graphs", [&budget](const int& n) { budget.set_cell_graphs(n); },
          "Graphs scored inside cells, the parts that a model repeats; 0: cells are not searched")
      ->check(WrongNumber)
      ->default_str(fmt::to_string(limits.cell_graphs_max));
  field("--candidates", budget, &Budget::set_candidates, fmt::to_string(limits.candidates_max),
        "Whole graphs measured per round; with --search paper 20");
  field("--streams", request, &Request::set_streams_max, "the device's", "At most so many streams");
  field("--piece-nodes", request, &Request::set_piece_nodes,
        fmt::to_string(options.partition.piece_nodes_max),
        "With --search paper: the most operators of a piece of the graph");
  field("--region-nodes", request, &Request::set_region_nodes,
        fmt::to_string(options.partition.region_nodes_max),
        "With --search paper: the most operators of a run of pieces");
  field("--alpha", request, &Request::set_alpha, fmt::to_string(options.alpha),
        "Weight of the critical path in the estimate of a graph");
  field("--beta", request, &Request::set_beta, fmt::to_string(options.beta),
        "The search keeps graphs whose estimate is below so many times the best; at least 1");
  verb->add_option("--seed", flags.seed, "Seed of the search and its data")->check(WrongNumber);
  verb->add_option("--without", flags.without, "A rule to leave out; may be repeated")
      ->default_str("none");
}

void Commands::AddLocalVerbs() {
  RunFlags& run = flags_.run;
  CLI::App* verb = Verb(&app_, "run", "Run a model here, with its plan when it carries one",
                        [&run](Context& c) { return RunModel(c, run); });
  AddModel(verb, run.model, "ONNX file");
  AddTune(verb, run.model);
  verb->add_option("--input", run.inputs,
                   "NAME=FILE.npy or NAME=FILE.pb, once for each tensor of a sequence; others get "
                   "made data")
      ->default_str("none");
  verb->add_option("--output", run.output_dir, "Folder for the outputs as .npy files")
      ->default_str("none");
  verb->add_option("--seed", run.seed, "Seed of made inputs")->check(WrongNumber);

  VerifyFlags& verify = flags_.verify;
  verb = Verb(&app_, "verify", "Compare two models, or a model with its ONNX test data",
              [&verify](Context& c) { return RunVerify(c, verify); });
  AddModel(verb, verify.model, "ONNX file, or a folder with model.onnx and test_data_set_N");
  verb->add_option("--against", verify.against, "The other ONNX file")
      ->default_str("test data of a folder");
  verb->add_option("--tolerance", verify.tolerance, "Largest |a-b| / max|a| of any output");
  verb->add_option("--seeds", verify.seeds, "Sets of made inputs")->check(WrongAmount);
  AddInputs(verb, verify.model,
            "With --against: folder of your own inputs, NAME.npy or NAME.pb, compared on first");
}

void Commands::AddBench() {
  BenchFlags& bench = flags_.bench;
  CLI::App* verb =
      Verb(&app_, "bench", "Time a model here: unfused, input and its plan, interleaved",
           [&bench](Context& c) { return RunBench(c, bench); });
  AddModel(verb, bench.model, "ONNX file");
  AddTune(verb, bench.model);
  AddInputs(verb, bench.model, "Folder of your own inputs, NAME.npy or NAME.pb: the first set");
  const auto count = [&](const char* name, int& value, const char* otherwise, const char* help) {
    verb->add_option(name, value, help)->check(WrongAmount)->default_str(otherwise);
  };
  count("--streams", bench.streams, "none", "Also time the input on so many streams");
  verb->add_option("--seconds", bench.seconds,
                   "About how long to sample; with --clients for each row")
      ->check(WrongAmount)
      ->default_str("10, with --clients 3");
  verb->add_flag("--cold-cache", bench.cold_cache,
                 "Evict the device's caches before every run (not with --clients)");
  verb->add_option("--compare", bench.compare,
                   "OLD.onnx, to time the model against: exit 0 not slower, 6 SLOWER")
      ->default_str("none");
  verb->add_option("--tolerance", bench.tolerance,
                   "With --compare: largest |a-b| / max|a| of any output; beyond it exit 1")
      ->check(WrongAmount);
  verb->add_flag("--no-verify", bench.no_verify, "With --compare: do not compare outputs");
  verb->add_flag("--fail-ambiguous", bench.fail_ambiguous,
                 "With --compare: AMBIGUOUS ends with 6 as SLOWER does");
  count("--clients", bench.clients, "none", "Time so many sessions at once, beside one alone");
  count("--cores-each", bench.cores_each, "the device's over the clients", "Cores of each client");
  count("--runs", bench.runs, "by --seconds", "With --clients: runs of each client");
  AddOrt(verb, bench.ort);
}

void Commands::AddPlan() {
  CLI::App* plan = Verb(&app_, "plan", "Look at plans", nullptr);
  plan->require_subcommand(1);
  CLI::App* verb = Verb(plan, "show", "How a model would run: groups, kernels, streams, waits",
                        [this](Context& c) { return RunPlanShow(c, flags_.plan); });
  AddModel(verb, flags_.plan.model, "ONNX file, or jobs/ID for what a job published");
  AddTune(verb, flags_.plan.model);
}

void Commands::AddJobs() {
  JobsFlags& flags = flags_.jobs;
  CLI::App* jobs = Verb(&app_, "jobs", "Jobs of the server", nullptr);
  jobs->require_subcommand(1);
  CLI::App* verb =
      Verb(jobs, "list", "Newest first", [&flags](Context& c) { return RunJobsList(c, flags); });
  verb->add_option("-n", flags.count, "At most so many");
  verb->add_option("--state", flags.state, "Only those in this state, such as FAILED")
      ->check(WrongState)
      ->default_str("any");
  verb->add_option("--device", flags.device, "Only those of this device")->default_str("any");
  verb->add_option("--model", flags.model, "Only those for this model: its file, or its SHA-256")
      ->default_str("any");
  verb->add_option("--since", flags.since, "Only those of so long ago at most, such as 2h")
      ->check(WrongDuration)
      ->default_str("any time");
  const auto named = [&](const char* name, const char* help,
                         StatusOr<int> (*run)(Context&, const JobsFlags&)) {
    CLI::App* one = Verb(jobs, name, help, [&flags, run](Context& c) { return run(c, flags); });
    one->add_option("job", flags.name, "jobs/... as listed")->required();
    return one;
  };
  named("show", "One job whole", RunJobsShow);
  named("watch", "Follow a job to its end", RunJobsWatch);
  verb = named("cancel", "Take a request off a job; without any it stops, the best so far is kept",
               RunJobsCancel);
  verb->add_flag("--for-all", flags.for_all, "Stop the job, whoever else waits for it");
  verb = named("fetch", "Write what a job made to a file", RunJobsFetch);
  verb->add_option("-o,--output", flags.output, "Where the model goes")->required();
  verb->add_option("--report", flags.report, "Where the report goes, as JSON")->default_str("none");
  verb->add_flag("--so-far", flags.so_far,
                 "Of a job that runs: its best so far, made, compared and timed as a file now");
  verb = Verb(jobs, "delete", "Delete a model with its ended jobs, results and remembered answers",
              [&flags](Context& c) { return RunJobsDelete(c, flags); });
  verb->add_option("model", flags.model, "The model's file, or its SHA-256")->required();
}

void Commands::AddCache() {
  CacheFlags& flags = flags_.cache;
  CLI::App* cache =
      Verb(&app_, "cache", "What is remembered: measurements, regions, graphs", nullptr);
  cache->require_subcommand(1);
  Verb(cache, "stats", "How much is remembered, and how often it helped",
       [&flags](Context& c) { return RunCacheStats(c, flags); });
  CLI::App* list = Verb(cache, "list", "Newest measurements first",
                        [&flags](Context& c) { return RunCacheList(c, flags); });
  list->add_option("-n", flags.count, "At most so many");
  list->add_option("--group", flags.group, "Only groups with this in their line, such as Relu")
      ->default_str("any");
  CLI::App* graphs = Verb(cache, "graphs", "Optimized graphs that are remembered, newest first",
                          [&flags](Context& c) { return RunCacheGraphs(c, flags); });
  graphs->add_option("model", flags.model, "Of this model: its file, or its SHA-256")
      ->default_str("all");
  graphs->add_option("-n", flags.count, "At most so many");
  CLI::App* regions =
      Verb(cache, "regions", "Parts of graphs with the best that was found for them",
           [&flags](Context& c) { return RunCacheRegions(c, flags); });
  regions->add_option("-n", flags.count, "At most so many");
  CLI::App* get = Verb(cache, "get", "Write the newest graph that is remembered of a model",
                       [&flags](Context& c) { return RunCacheGet(c, flags); });
  get->add_option("model", flags.model, "The model's file, or its SHA-256")->required();
  get->add_option("-o,--output", flags.output, "Where the graph goes")->required();
  get->add_option("--report", flags.report, "Where the report goes, as JSON")->default_str("none");
  for (CLI::App* verb : {graphs, get}) {
    verb->add_option("--device", flags.device, "Only for this device")->default_str("any");
  }
  for (CLI::App* verb : {list, graphs, regions, get}) {
    verb->add_option("--environment", flags.environment, "Only for this environment")
        ->default_str("any");
    verb->add_option("--key", flags.key, "Whose key begins so (lists say what it depends on)")
        ->default_str("any");
  }
  CLI::App* save = Verb(cache, "export", "Write all measurements to a file",
                        [&flags](Context& c) { return RunCacheExport(c, flags); });
  save->add_option("file", flags.file, "The file to write")->required();
  save->add_option("--environment", flags.environment, "Only of this environment")
      ->default_str("all");
  save->add_option("--device", flags.device,
                   "Only of this device as it is here, with its spec: a file that sim:FILE takes")
      ->default_str("all");
  CLI::App* load = Verb(cache, "import", "Read measurements that export wrote",
                        [&flags](Context& c) { return RunCacheImport(c, flags); });
  load->add_option("file", flags.file, "The file to read")->required();
  CLI::App* forget = Verb(cache, "forget", "Delete the measurements that fit every filter given",
                          [&flags](Context& c) { return RunCacheForget(c, flags); });
  const auto filter = [forget](const char* flag, auto& value, const char* help) {
    forget->add_option(flag, value, help)->default_str("any");
  };
  filter("--environment", flags.environment, "Of this environment");
  filter("--worker", flags.worker, "That this worker measured");
  filter("--import", flags.import, "That came by this import");
  filter("--kernel", flags.kernel, "With this kernel as the fastest");
  forget->add_flag("--all", flags.all, "Everything");
}

void Commands::AddStore() {
  StoreFlags& flags = flags_.store;
  CLI::App* store = Verb(&app_, "store", "Copies of a coordinator's store", nullptr);
  store->require_subcommand(1);
  const auto add = [&](const char* name, const char* help,
                       StatusOr<int> (*run)(Context&, const StoreFlags&), const char* folder) {
    CLI::App* verb = Verb(store, name, help, [&flags, run](Context& c) { return run(c, flags); });
    verb->add_option("folder", flags.folder, folder)->required();
    return verb;
  };
  add("backup", "Copy the store of a running server; made again, only what is new", RunStoreBackup,
      "Where the copy goes");
  add("verify", "Read every row and hash every file of a backup, or of a store that nobody uses",
      RunStoreVerify, "The backup, or a coordinator's --data");
  add("restore", "Make a store of a backup", RunStoreRestore, "The backup")
      ->add_option("target", flags.target, "The new store: a coordinator's --data")
      ->required();
}

void Commands::AddRules() {
  RulesFlags& flags = flags_.rules;
  CLI::App* rules = Verb(&app_, "rules", "Rewrite rules", nullptr);
  rules->require_subcommand(1);
  CLI::App* list = Verb(rules, "list", "The rules with their classes",
                        [&flags](Context& c) { return RunRulesList(c, flags); });
  list->add_option("file", flags.file, "A rules file (default: the built-in ones)");
  CLI::App* verify = Verb(rules, "verify", "Prove rules by exact arithmetic on random instances",
                          [&flags](Context& c) { return RunRulesVerify(c, flags); });
  verify->add_option("file", flags.file, "A rules file (default: the built-in ones)");
  verify->add_option("--instances", flags.instances, "Instances per rule")->check(WrongAmount);
  verify->add_option("--seed", flags.seed, "Seed of the instances")->check(WrongNumber);
  verify->add_option("--jobs", flags.jobs, "Rules at a time")
      ->check(WrongAmount)
      ->default_str("one for each core");
  verify->add_flag("--no-cache", flags.no_cache, "Prove anew, remember nothing");
}

void Commands::AddOthers() {
  ZooFlags& zoo = flags_.zoo;
  CLI::App* verb =
      Verb(&app_, "zoo", "Write a model of the zoo: published networks, seeded weights",
           [&zoo](Context& c) { return RunZoo(c, zoo); });
  verb->add_option("name", zoo.name, "A name that --list prints");
  verb->add_option("-o,--output", zoo.output, "The ONNX file to write")
      ->default_str("required without --list");
  verb->add_flag("--list", zoo.list, "List the models");
  verb->add_option("--batch", zoo.batch, "Batch size");
  verb->add_option("--seed", zoo.seed, "Seed of the weights")->check(WrongNumber);

  CLI::App* workers = Verb(&app_, "workers", "Workers of the server", nullptr);
  workers->require_subcommand(1);
  Verb(workers, "list", "Devices, health and what they do", RunWorkersList);
  std::string& worker_id = flags_.worker_id;
  verb = Verb(workers, "admit", "Give work again to a worker that was drained for a wrong figure",
              [&worker_id](Context& c) { return RunWorkersAdmit(c, worker_id); });
  verb->add_option("id", worker_id, "Its name in the list")->required();

  TokenFlags& token = flags_.token;
  verb = Verb(&app_, "token", "Make a token for the coordinator's file of tokens",
              [&token](Context& c) { return RunToken(c, token); });
  verb->add_option("name", token.name, "Whose it is: the tenant of its jobs and models")
      ->required();
  verb->add_option("--roles", token.roles, "Some of submit,read,admin,worker");
  verb->add_option("--tokens", token.tokens, "The coordinator's file, which gets its hash")
      ->envname("AUTOGRAPH_TOKENS")
      ->required();
  verb->add_option("--quota", token.quota,
                   "Device seconds that it may use in 24 hours; 0: no limit")
      ->check(WrongNumber)
      ->default_str("the coordinator's");
  verb->add_option("-o,--output", token.output, "New file for the token")
      ->default_str("standard output");

  verb = Verb(&app_, "health", "Ask a server whether it serves",
              [this](Context& c) { return RunHealth(c, flags_.health); });
  verb->add_option("name", flags_.health,
                   "live: the process runs; ready: it takes jobs; workers: some device serves");

  verb = Verb(&app_, "doctor", "Check this machine: store, device, executor, sandbox",
              [this](Context& c) { return RunDoctor(c, flags_.doctor); });
  verb->add_option("--device", flags_.doctor.device, "The device to check")->check(WrongDevice);
}

}  // namespace

int CliMain(int argc, char** argv) { return Commands().Run(argc, argv); }

}  // namespace ag
