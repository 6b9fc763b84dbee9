// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/device.h"

namespace torch_tpu::runtime {
namespace fs = std::filesystem;
namespace {

constexpr char kMagic[8] = {'t', 't', 'p', 'u', 'e', 'x', 'e', '1'};

struct Hash128 {
  uint64_t a, b;
};

Hash128 hash128(std::string_view s) {
  uint64_t a = 0x9e3779b97f4a7c15ull ^ s.size(), b = 0xc2b2ae3d27d4eb4full + s.size();
  size_t i = 0;
  auto mix = [&](uint64_t w) {
    a = (a ^ w) * 0xff51afd7ed558ccdull;
    a ^= a >> 32;
    b = (b + w) * 0xc4ceb9fe1a85ec53ull;
    b ^= (b >> 29) ^ (a << 7);
  };
  for (; i + 8 <= s.size(); i += 8) {
    uint64_t w;
    std::memcpy(&w, s.data() + i, 8);
    mix(w);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, s.data() + i, s.size() - i);
  mix(tail);
  mix(a ^ (b >> 3));
  return {a, b};
}

std::string read_features() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) return line;
  }
  return "unknown";
}

}  // namespace

std::string hash_hex(const std::string& s) {
  const Hash128 h = hash128(s);
  char out[33];
  std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(h.a),
                static_cast<unsigned long long>(h.b));
  return out;
}

const std::string& cpu_features() {
  static const std::string features = read_features();
  return features;
}

const DiskCache& DiskCache::global() {
  static const auto* cache =
      new DiskCache(Device::config().cache_dir, Device::config().cache_max_bytes);
  return *cache;
}

DiskCache::DiskCache(std::string folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) folder_.clear();  // no cache is better than no program
}

std::string DiskCache::key(const pjrt::Client& client, const pjrt::CompileOptions& options,
                           const std::string& text) const {
  const pjrt::Plugin& plugin = client.plugin();
  std::string all = plugin.fingerprint() + '\n' + client.platform_name() + '\n' +
                    client.platform_version() + '\n' + client.device_kind(client.devices()[0]) +
                    '\n' + options.serialize() + '\n';
  if (client.platform_name() == "cpu") all += cpu_features() + '\n';
  const char* flags = std::getenv("XLA_FLAGS");
  if (flags) all += flags;
  return hash_hex(all + text);
}

bool DiskCache::load(const std::string& key, std::string* bytes) const {
  const fs::path path = fs::path(folder_) / key;
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  std::ostringstream content;
  content << in.rdbuf();
  std::string all = std::move(content).str();
  const size_t header = sizeof kMagic + 16;
  if (all.size() < header || std::memcmp(all.data(), kMagic, sizeof kMagic) != 0) return false;
  const Hash128 h = hash128(std::string_view(all).substr(header));
  if (std::memcmp(all.data() + sizeof kMagic, &h, 16) != 0) return false;
  *bytes = all.substr(header);
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // what trim() goes by
  return true;
}

void DiskCache::store(const std::string& key, const std::string& bytes) const {
  static std::atomic<int> counter{0};
  const int n = counter++;
  const fs::path path = fs::path(folder_) / key;
  const fs::path temporary =
      fs::path(folder_) / (key + "." + std::to_string(::getpid()) + "." + std::to_string(n));
  {
    std::ofstream out(temporary, std::ios::binary);
    const Hash128 h = hash128(bytes);
    out.write(kMagic, sizeof kMagic);
    out.write(reinterpret_cast<const char*>(&h), 16);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out) {
      std::error_code ignored;
      fs::remove(temporary, ignored);
      return;
    }
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) fs::remove(temporary, error);
  if (n % 256 == 0) trim();
}

void DiskCache::trim() const {
  struct File {
    fs::file_time_type time;
    int64_t size;
    fs::path path;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    std::error_code gone;  // another process may trim too
    const auto size = entry.file_size(gone);
    const auto time = entry.last_write_time(gone);
    if (gone) continue;
    files.push_back({time, static_cast<int64_t>(size), entry.path()});
    total += static_cast<int64_t>(size);
  }
  if (total <= max_bytes_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& f : files) {
    if (total <= max_bytes_ * 3 / 4) break;
    std::error_code ignored;
    fs::remove(f.path, ignored);
    total -= f.size;
  }
}

}  // namespace torch_tpu::runtime
