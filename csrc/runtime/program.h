// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hlo/builder.h"
#include "runtime/array.h"

namespace torch_tpu::runtime {

// A compiled program and how it is launched. Immutable; shared by all signatures that build the
// same text.
struct Program {
  std::string name;  // operator or graph, for profiles and errors
  pjrt::LoadedExecutable executable;
  std::vector<int> inputs;           // operand numbers that the executable takes
  std::vector<const Type*> outputs;  // results, checks not included
  std::vector<int> aliases;          // per result: the operand it may overwrite, or -1
  std::vector<bool> donatable;       // per input: a result may overwrite it
  struct Check {
    const Type* type;            // of what it found, hlo::Builder::check
    const std::string* message;  // at an address that outlives the program
  };
  std::vector<Check> checks;
  pjrt::MemoryStats memory() const { return executable.memory_stats(); }
};

struct CompileRecord {
  std::string name;
  double seconds = 0;
  enum class Source { compiled, disk } source = Source::compiled;
};

struct CompileStats {
  int64_t compiles = 0, memory_hits = 0, disk_hits = 0;
  double compile_seconds = 0, disk_seconds = 0;
};

// Programs by their text, in memory and on disk. Thread-safe.
class ProgramCache {
 public:
  static ProgramCache& global();
  // The program of this module: from memory, from disk, or compiled now. Throws pjrt::Error, the
  // name in its text.
  std::shared_ptr<const Program> get(const std::string& name, hlo::Module module);

  CompileStats stats() const;
  void count_hit() { memory_hits_.fetch_add(1, std::memory_order_relaxed); }
  // Everything compiled or loaded since `since` records ago; for tests and profiles.
  std::vector<CompileRecord> records(size_t since = 0) const;
  void reset_stats();
  // The texts of all programs asked for, when `keep_texts` was set: what planning compiles for a
  // TPU.
  void keep_texts(bool on);
  std::vector<std::pair<std::string, std::string>> texts() const;  // (name, StableHLO)
  void clear();                                                    // forgets the programs in memory
  // Called when the cache forgets its programs because it holds too many (Config::max_programs):
  // whoever keeps references must drop them, or the memory stays taken. Set once.
  void on_forget(std::function<void()> f);

 private:
  ProgramCache();
  void forget_if_many();
  struct Impl;
  Impl* impl_;  // leaked: programs outlive statics
  std::atomic<int64_t> memory_hits_{0};
};

// Launches on `device`. `operands` are all operand arrays (those the program dropped are ignored);
// `donate` says per operand whether its buffer may be consumed (the caller replaces it with a
// result). `results` has room for `program.outputs`.
void launch(const Program& program, Device& device, DeviceArray* const* operands,
            const bool* donate, Array* results);

}  // namespace torch_tpu::runtime
