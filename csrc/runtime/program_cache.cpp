// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "runtime/device.h"
#include "runtime/disk_cache.h"
#include "runtime/program.h"

namespace torch_tpu::runtime {
namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

// A string at an address that outlives its program: a check may be read after the program is
// forgotten.
const std::string* kept(std::string message) {
  static std::mutex mutex;
  static auto* messages = new std::unordered_set<std::string>();
  std::lock_guard lock(mutex);
  return &*messages->insert(std::move(message)).first;
}

}  // namespace

struct ProgramCache::Impl {
  mutable std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Program>> programs;  // by text
  std::vector<CompileRecord> records;
  CompileStats stats;
  bool keep_texts = false;
  std::vector<std::pair<std::string, std::string>> texts;
  std::function<void()> forget;
};

ProgramCache::ProgramCache() : impl_(new Impl) {}

ProgramCache& ProgramCache::global() {
  static auto* cache = new ProgramCache();
  return *cache;
}

// Two threads that miss the same text at once both compile it: rare, and cheaper than a lock held
// for 20 ms.
std::shared_ptr<const Program> ProgramCache::get(const std::string& name, hlo::Module module) {
  // Two programs may differ only in what their checks say.
  for (const std::string& message : module.checks) module.text += "\n// check: " + message;
  {
    std::lock_guard lock(impl_->mutex);
    auto it = impl_->programs.find(module.text);
    if (it != impl_->programs.end()) return it->second;
  }
  pjrt::Client& client = Device::client();
  const pjrt::CompileOptions options = client.options_for(module.text);
  auto program = std::make_shared<Program>();
  program->name = name;
  program->inputs = std::move(module.inputs);
  const size_t num_results =
      module.outputs.size() - module.checks.size();  // what the checks found comes last
  for (size_t i = 0; i < num_results; ++i) program->outputs.push_back(intern(module.outputs[i]));
  program->aliases = std::move(module.aliases);
  program->aliases.resize(num_results);
  for (int input : program->inputs)
    program->donatable.push_back(std::ranges::find(program->aliases, input) !=
                                 program->aliases.end());
  for (size_t i = 0; i < module.checks.size(); ++i) {
    program->checks.push_back(
        {intern(module.outputs[num_results + i]), kept(std::move(module.checks[i]))});
  }

  const auto start = std::chrono::steady_clock::now();
  CompileRecord record{name, 0, CompileRecord::Source::compiled};
  const DiskCache& disk = DiskCache::global();
  const std::string key = disk.enabled() ? disk.key(client, options, module.text) : "";
  std::string bytes;
  if (disk.enabled() && disk.load(key, &bytes)) {
    try {
      program->executable = client.deserialize(bytes, options);
      record.source = CompileRecord::Source::disk;
    } catch (const pjrt::Error&) {
      // A torn or foreign file: compile as if it were not there; the new file replaces it.
    }
  }
  if (!program->executable) {
    try {
      program->executable = client.compile(module.text, options);
    } catch (const pjrt::Error& e) {
      throw pjrt::Error(e.code(), "compile of " + name + " failed: " + e.what() + "\n" +
                                      module.text.substr(0, 4000));
    }
    if (disk.enabled()) {
      try {
        disk.store(key, program->executable.serialize());
      } catch (const pjrt::Error&) {
        // A plugin that cannot serialize only loses the disk cache.
      }
    }
  }
  record.seconds = seconds_since(start);

  forget_if_many();
  std::lock_guard lock(impl_->mutex);
  const bool compiled = record.source == CompileRecord::Source::compiled;
  (compiled ? impl_->stats.compiles : impl_->stats.disk_hits)++;
  (compiled ? impl_->stats.compile_seconds : impl_->stats.disk_seconds) += record.seconds;
  impl_->records.push_back(std::move(record));
  if (impl_->keep_texts) impl_->texts.emplace_back(name, module.text);
  return impl_->programs.emplace(std::move(module.text), std::move(program)).first->second;
}

CompileStats ProgramCache::stats() const {
  std::lock_guard lock(impl_->mutex);
  CompileStats s = impl_->stats;
  s.memory_hits = memory_hits_.load(std::memory_order_relaxed);
  return s;
}

std::vector<CompileRecord> ProgramCache::records(size_t since) const {
  std::lock_guard lock(impl_->mutex);
  if (since >= impl_->records.size()) return {};
  return {impl_->records.begin() + static_cast<std::ptrdiff_t>(since), impl_->records.end()};
}

void ProgramCache::reset_stats() {
  std::lock_guard lock(impl_->mutex);
  impl_->stats = {};
  impl_->records.clear();
  memory_hits_ = 0;
}

void ProgramCache::keep_texts(bool on) {
  std::lock_guard lock(impl_->mutex);
  impl_->keep_texts = on;
  if (!on) impl_->texts.clear();
}

std::vector<std::pair<std::string, std::string>> ProgramCache::texts() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->texts;
}

void ProgramCache::forget_if_many() {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->programs.size() < Device::config().max_programs) return;
  }
  clear();
}

void ProgramCache::on_forget(std::function<void()> f) {
  std::lock_guard lock(impl_->mutex);
  impl_->forget = std::move(f);
}

void ProgramCache::clear() {
  std::function<void()> forget;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->programs.clear();
    forget = impl_->forget;
  }
  if (forget) forget();
}

}  // namespace torch_tpu::runtime
