// Runs a SavedModel as TensorFlow Serving loads it: LoadSavedModel, no Python.
//
//   runner check EXPORT_DIR CASES_DIR [TOLERANCE=1e-5]
//   runner fuzz EXPORT_DIR GOOD.wav FOLDER [CPU_SECONDS_PER_FILE=10]
//   runner time EXPORT_DIR CASES_DIR REPEATS
//
// tests/serving_cases.py builds it and writes the cases. Exits with 0 if all
// is well, 1 if the model is at fault, 2 on bad usage, 3 if one Run of `fuzz`
// takes too long.
//
// More permissive than a server: the wheel links XLA and registers operations
// that a server lacks, so audio_tf/export/gate.py looks for those.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model.h"

namespace {

constexpr char kUsage[] =
    "usage: runner check EXPORT_DIR CASES_DIR [TOLERANCE=1e-5]\n"
    "       runner fuzz EXPORT_DIR GOOD.wav FOLDER "
    "[CPU_SECONDS_PER_FILE=10]\n"
    "       runner time EXPORT_DIR CASES_DIR REPEATS\n";
constexpr double kFuzzTolerance = 1e-6;
// The first Run also plans the graph.
constexpr double kFirstRunSeconds = 60;

double Number(const std::string& text, double minimum) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= minimum) || value > 1e6) {
    throw UsageError(Text("expected a number from ", minimum,
                          " to 1e6. Received: ", std::quoted(text)));
  }
  return value;
}

double CheckCase(Model& model, const Case& test, double tolerance) {
  const Tensors found = model.Run(test.signature, test.inputs);
  for (const auto& [key, value] : found) {
    if (!test.outputs.count(key)) throw Fault("unexpected output " + key);
  }
  double largest = 0;
  for (const auto& [key, expected] : test.outputs) {
    const auto output = found.find(key);
    if (output == found.end()) throw Fault("missing output " + key);
    double difference = 0;
    try {
      difference = Difference(expected, output->second);
    } catch (const Fault& fault) {
      throw Fault(key + ": " + fault.what());
    }
    // Written so that NaN fails.
    if (!(difference <= tolerance)) {
      throw Fault(Text(key, ": max difference ", difference, " > ",
                       tolerance));
    }
    largest = std::max(largest, difference);
  }
  return largest;
}

int Check(const std::vector<std::string>& args) {
  const double tolerance = args.size() > 2 ? Number(args[2], 0) : 1e-5;
  const auto folders = Sorted(args[1], true);
  Model model(args[0]);
  std::set<std::string> untested = model.signatures();
  int failures = 0;
  for (const auto& folder : folders) {
    try {
      const Case test = ReadCase(folder);
      untested.erase(test.signature);
      const double largest = CheckCase(model, test, tolerance);
      std::cout << "ok   " << test.name << " (" << test.signature
                << "): max difference " << largest << std::endl;
    } catch (const Fault& fault) {
      ++failures;
      std::cout << "FAIL " << folder.filename().string() << ": "
                << fault.what() << std::endl;
    }
  }
  for (const auto& name : untested) {
    std::cout << "FAIL signature " << name << " has no case" << std::endl;
  }
  std::cout << folders.size() << " cases, " << failures << " failed, "
            << untested.size() << " signatures without a case" << std::endl;
  return failures || !untested.empty();
}

// CPU time of this process, which stands still while others have the cores.
double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Ends the process if it is not destroyed before the process has taken
// `seconds` of CPU time: a Run cannot be interrupted from outside.
class Watchdog {
 public:
  Watchdog(std::string name, double seconds)
      : thread_([this, name = std::move(name), seconds] {
          const double end = CpuSeconds() + seconds;
          const auto finished = finished_.get_future();
          while (finished.wait_for(std::chrono::milliseconds(20)) ==
                 std::future_status::timeout) {
            if (CpuSeconds() < end) continue;
            std::cerr << "TOO SLOW " << name << ": Run takes more than "
                      << seconds << " s of CPU" << std::endl;
            std::_Exit(3);
          }
        }) {}

  ~Watchdog() {
    finished_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> finished_;
  std::thread thread_;
};

struct Decoded {
  Tensor scores, valid, error;
};

class Fuzzer {
 public:
  explicit Fuzzer(const std::string& export_dir) : model_(export_dir) {}

  Decoded Run(const std::string& name, const std::vector<std::string>& files,
              double limit) {
    const int64_t batch = files.size();
    Tensor bytes(tensorflow::DT_STRING, {batch});
    std::copy(files.begin(), files.end(),
              bytes.flat<tensorflow::tstring>().data());
    const double start = CpuSeconds();
    const Watchdog watchdog(name, limit);
    const Tensors outputs =
        model_.Run("serving_audio_bytes", {{"audio_bytes", bytes}});
    last_seconds = CpuSeconds() - start;
    return {Output(outputs, "scores", tensorflow::DT_FLOAT, batch, 2),
            Output(outputs, "valid", tensorflow::DT_BOOL, batch, 1),
            Output(outputs, "error", tensorflow::DT_INT32, batch, 1)};
  }

  double last_seconds = 0;

 private:
  static Tensor Output(const Tensors& outputs, const std::string& key,
                       tensorflow::DataType dtype, int64_t batch, int rank) {
    const auto output = outputs.find(key);
    if (output == outputs.end()) throw Fault("no output " + key);
    const Tensor& tensor = output->second;
    if (tensor.dtype() != dtype || tensor.dims() != rank ||
        tensor.dim_size(0) != batch) {
      throw Fault(Text(key, " is ", tensor.DebugString(0)));
    }
    return tensor;
  }

  Model model_;
};

void CheckGoodRow(const Decoded& found, int64_t row, const Tensor& alone) {
  const bool valid = found.valid.vec<bool>()(row);
  const int error = found.error.vec<int32_t>()(row);
  if (!valid || error) {
    throw Fault(Text("good row ", row, ": valid ", valid, ", error ", error));
  }
  const double difference =
      Difference(alone.Slice(0, 1), found.scores.Slice(row, row + 1));
  if (!(difference <= kFuzzTolerance)) {
    throw Fault(Text("good row ", row, ": scores differ by ", difference,
                     " from those alone"));
  }
}

void CheckOddRow(const Decoded& found, int64_t row) {
  const bool valid = found.valid.vec<bool>()(row);
  const int error = found.error.vec<int32_t>()(row);
  if (valid != (error == 0)) {
    throw Fault(Text("its row: valid ", valid, ", error ", error));
  }
  const auto scores = found.scores.matrix<float>();
  for (int64_t i = 0; i < scores.dimension(1); ++i) {
    if (!std::isfinite(scores(row, i))) {
      throw Fault(Text("its row: score ", scores(row, i)));
    }
  }
}

std::string PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) {
      return line.substr(line.find_first_not_of(" \t", 6));
    }
  }
  return "unknown";
}

int Fuzz(const std::vector<std::string>& args) {
  const double limit = args.size() > 3 ? Number(args[3], 1e-3) : 10;
  if (!fs::is_regular_file(args[1])) {
    throw UsageError("not a file: " + args[1]);
  }
  const auto paths = Sorted(args[2], false);
  if (paths.empty()) throw UsageError("no files in " + args[2]);
  const std::string good = ReadFile(args[1]);
  Fuzzer fuzzer(args[0]);
  const Decoded alone =
      fuzzer.Run(args[1], {good}, std::max(limit, kFirstRunSeconds));
  CheckGoodRow(alone, 0, alone.scores);

  std::map<int, int> errors;
  int violations = 0;
  double max_seconds = 0;
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    try {
      const Decoded found =
          fuzzer.Run(name, {good, ReadFile(path), good}, limit);
      max_seconds = std::max(max_seconds, fuzzer.last_seconds);
      ++errors[found.error.vec<int32_t>()(1)];
      CheckGoodRow(found, 0, alone.scores);
      CheckGoodRow(found, 2, alone.scores);
      CheckOddRow(found, 1);
    } catch (const Fault& fault) {
      ++violations;
      std::cout << "FAIL " << name << ": " << fault.what() << std::endl;
    }
  }
  std::cout << paths.size() << " files, " << violations << " violations\n";
  for (const auto& [code, count] : errors) {
    std::cout << "error " << code << ": " << count << " files\n";
  }
  std::cout << "max CPU seconds: " << max_seconds << "\n"
            << "peak memory: " << PeakMemory() << std::endl;
  return violations > 0;
}

double RunMilliseconds(Model& model, const Case& test) {
  const auto start = std::chrono::steady_clock::now();
  model.Run(test.signature, test.inputs);
  const std::chrono::duration<double, std::milli> taken =
      std::chrono::steady_clock::now() - start;
  return taken.count();
}

int Time(const std::vector<std::string>& args) {
  const auto repeats = static_cast<size_t>(Number(args[2], 1));
  const auto folders = Sorted(args[1], true);
  if (folders.empty()) throw UsageError("no cases in " + args[1]);
  Model model(args[0]);
  for (const auto& folder : folders) {
    const Case test = ReadCase(folder);
    const double first = RunMilliseconds(model, test);
    std::vector<double> times(repeats);
    for (double& time : times) time = RunMilliseconds(model, test);
    std::sort(times.begin(), times.end());
    const double median =
        (times[(repeats - 1) / 2] + times[repeats / 2]) / 2;
    const double p99 = times[(99 * repeats + 99) / 100 - 1];
    std::cout << "{\"case\": " << std::quoted(test.name)
              << ", \"signature\": " << std::quoted(test.signature)
              << ", \"repeats\": " << repeats << ", \"first_ms\": " << first
              << ", \"median_ms\": " << median << ", \"p99_ms\": " << p99
              << "}" << std::endl;
  }
  return 0;
}

struct Mode {
  int (*function)(const std::vector<std::string>&);
  size_t fewest, most;
};

int Main(std::vector<std::string> args) {
  static const std::map<std::string, Mode> kModes = {
      {"check", {Check, 2, 3}}, {"fuzz", {Fuzz, 3, 4}}, {"time", {Time, 3, 3}}};
  const auto mode = args.empty() ? kModes.end() : kModes.find(args[0]);
  if (mode == kModes.end()) {
    throw UsageError(args.empty() ? "no mode" : "unknown mode " + args[0]);
  }
  args.erase(args.begin());
  const auto& [function, fewest, most] = mode->second;
  if (args.size() < fewest || args.size() > most) {
    throw UsageError(Text("wrong number of arguments: ", args.size()));
  }
  return function(args);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main({argv + 1, argv + argc});
  } catch (const UsageError& error) {
    std::cerr << "runner: " << error.what() << "\n" << kUsage;
    return 2;
  } catch (const std::exception& error) {
    std::cout << "FAIL " << error.what() << std::endl;
    return 1;
  }
}
