// SPDX-License-Identifier: Apache-2.0
#include "aten/signatures.h"

#include <cstring>
#include <unordered_set>

namespace torch_tpu::aten {
namespace {

std::mutex& all_mutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

std::unordered_set<Signatures*>& all() {
  static auto* set = new std::unordered_set<Signatures*>();
  return *set;
}

}  // namespace

size_t KeyHash::operator()(const std::vector<uint64_t>& k) const {
  uint64_t h = 0x9e3779b97f4a7c15ull ^ k.size();
  for (uint64_t w : k) {
    h = (h ^ w) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

Signatures::Signatures() {
  std::lock_guard lock(all_mutex());
  static const bool once = [] {
    runtime::ProgramCache::global().on_forget(&Signatures::clear_all);
    return true;
  }();
  (void)once;
  all().insert(this);
}

Signatures::~Signatures() {
  std::lock_guard lock(all_mutex());
  all().erase(this);
}

std::shared_ptr<const Compiled> Signatures::find(const Key& key) {
  std::lock_guard lock(mutex_);
  if (last_ && last_key_.size() == key.size() &&
      std::memcmp(last_key_.data(), key.data(), key.size() * sizeof(uint64_t)) == 0)
    return last_;
  auto it = map_.find(std::vector<uint64_t>(key.begin(), key.end()));
  if (it == map_.end()) return nullptr;
  last_key_ = key;
  last_ = it->second;
  return last_;
}

void Signatures::insert(const Key& key, std::shared_ptr<const Compiled> c) {
  std::lock_guard lock(mutex_);
  map_[std::vector<uint64_t>(key.begin(), key.end())] = std::move(c);
}

size_t Signatures::size() const {
  std::lock_guard lock(mutex_);
  return map_.size();
}

void Signatures::each(const std::function<void(const Compiled&)>& f) const {
  std::lock_guard lock(mutex_);
  for (const auto& [key, c] : map_) f(*c);
}

// The program cache is full: without this, the programs it forgets would stay alive here.
void Signatures::clear_all() {
  std::lock_guard lock(all_mutex());
  for (Signatures* s : all()) {
    std::lock_guard own(s->mutex_);
    s->map_.clear();
    s->last_.reset();
  }
}

}  // namespace torch_tpu::aten
