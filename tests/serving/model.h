// A SavedModel's signatures and the cases with which they are tested.

#ifndef AUDIO_TF_TESTS_SERVING_MODEL_H_
#define AUDIO_TF_TESTS_SERVING_MODEL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"

namespace fs = std::filesystem;
using tensorflow::Tensor;
using Tensors = std::map<std::string, Tensor>;

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The model, a case or a result is wrong.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

inline std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Fault(Text("cannot read ", path));
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::vector<fs::path> Sorted(const fs::path& folder, bool folders) {
  if (!fs::is_directory(folder)) {
    throw UsageError(Text("not a folder: ", folder));
  }
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (folders ? entry.is_directory() : entry.is_regular_file()) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Model {
 public:
  explicit Model(const std::string& folder) {
    if (!tensorflow::MaybeSavedModelDirectory(folder)) {
      throw UsageError(Text("no SavedModel in ", folder));
    }
    const auto status = tensorflow::LoadSavedModel(
        tensorflow::SessionOptions(), tensorflow::RunOptions(), folder,
        {"serve"}, &bundle_);
    if (!status.ok()) throw Fault(Text("does not load: ", status.ToString()));
  }

  std::set<std::string> signatures() const {
    std::set<std::string> names;
    for (const auto& [name, signature] : bundle_.GetSignatures()) {
      if (name != "__saved_model_init_op") names.insert(name);
    }
    return names;
  }

  // All outputs; inputs that are left out are the signature's defaults.
  Tensors Run(const std::string& name, const Tensors& inputs) {
    if (!signatures().count(name)) throw Fault("no signature " + name);
    const auto& signature = bundle_.GetSignatures().at(name);
    for (const auto& [key, value] : inputs) {
      if (!signature.inputs().contains(key)) throw Fault("no input " + key);
    }
    std::vector<std::pair<std::string, Tensor>> feeds;
    for (const auto& [key, info] : signature.inputs()) {
      feeds.emplace_back(info.name(), Input(signature, key, inputs));
    }
    std::vector<std::string> keys, fetches;
    for (const auto& [key, info] : signature.outputs()) {
      keys.push_back(key);
      fetches.push_back(info.name());
    }
    std::vector<Tensor> results;
    const auto status =
        bundle_.GetSession()->Run(feeds, fetches, {}, &results);
    if (!status.ok()) throw Fault("Run: " + status.ToString());
    Tensors outputs;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto& info = signature.outputs().at(keys[i]);
      const tensorflow::PartialTensorShape promised(info.tensor_shape());
      if (results[i].dtype() != info.dtype() ||
          !promised.IsCompatibleWith(results[i].shape())) {
        throw Fault(Text(keys[i], ": the signature promises ",
                         tensorflow::DataTypeString(info.dtype()), " ",
                         promised.DebugString(), ", not ",
                         results[i].DebugString(0)));
      }
      outputs.emplace(keys[i], results[i]);
    }
    return outputs;
  }

 private:
  static Tensor Input(const tensorflow::SignatureDef& signature,
                      const std::string& key, const Tensors& inputs) {
    if (const auto given = inputs.find(key); given != inputs.end()) {
      return given->second;
    }
    const auto standard = signature.defaults().find(key);
    Tensor tensor;
    if (standard == signature.defaults().end()) {
      throw Fault("no value and no default for input " + key);
    }
    if (!tensor.FromProto(standard->second)) {
      throw Fault("broken default of input " + key);
    }
    return tensor;
  }

  tensorflow::SavedModelBundle bundle_;
};

struct Case {
  std::string name, signature;
  Tensors inputs, outputs;
};

inline Tensors ReadTensors(const fs::path& folder) {
  Tensors tensors;
  if (!fs::is_directory(folder)) return tensors;
  for (const auto& path : Sorted(folder, false)) {
    if (path.extension() != ".pb") continue;
    tensorflow::TensorProto proto;
    Tensor tensor;
    if (!proto.ParseFromString(ReadFile(path)) || !tensor.FromProto(proto)) {
      throw Fault(Text("not a TensorProto: ", path));
    }
    tensors.emplace(path.stem().string(), tensor);
  }
  return tensors;
}

inline Case ReadCase(const fs::path& folder) {
  std::string signature = ReadFile(folder / "signature");
  signature.erase(signature.find_last_not_of(" \r\n\t") + 1);
  return {folder.filename().string(), signature,
          ReadTensors(folder / "inputs"), ReadTensors(folder / "outputs")};
}

template <typename T>
double MaxDifference(const Tensor& left, const Tensor& right) {
  // Unaligned, as rows of a batch are.
  const auto a = left.unaligned_flat<T>(), b = right.unaligned_flat<T>();
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(a(i)) - static_cast<double>(b(i)));
    // Also of two infinities; std::max would drop it.
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

inline bool SameStrings(const Tensor& left, const Tensor& right) {
  const auto a = left.unaligned_flat<tensorflow::tstring>();
  const auto b = right.unaligned_flat<tensorflow::tstring>();
  return std::equal(a.data(), a.data() + a.size(), b.data());
}

// Largest difference of numbers, 0 of equal others and NaN where there is one.
inline double Difference(const Tensor& expected, const Tensor& found) {
  if (expected.dtype() != found.dtype() ||
      expected.shape() != found.shape()) {
    throw Fault(Text("expected ", expected.DebugString(0), ", found ",
                     found.DebugString(0)));
  }
  switch (expected.dtype()) {
    case tensorflow::DT_FLOAT:
      return MaxDifference<float>(expected, found);
    case tensorflow::DT_DOUBLE:
      return MaxDifference<double>(expected, found);
    case tensorflow::DT_HALF:
      return MaxDifference<Eigen::half>(expected, found);
    case tensorflow::DT_BFLOAT16:
      return MaxDifference<Eigen::bfloat16>(expected, found);
    case tensorflow::DT_STRING:
      if (SameStrings(expected, found)) return 0;
      break;
    default:
      if (expected.tensor_data() == found.tensor_data()) return 0;
  }
  throw Fault(Text("expected ", expected.DebugString(7), ", found ",
                   found.DebugString(7)));
}

#endif  // AUDIO_TF_TESTS_SERVING_MODEL_H_
