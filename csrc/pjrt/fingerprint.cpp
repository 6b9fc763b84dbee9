// SPDX-License-Identifier: Apache-2.0
#include "pjrt/fingerprint.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "pjrt/error.h"

namespace torch_tpu::pjrt {
namespace {

// FNV-1a's step on words of 8 bytes, with the high half folded back so that every bit of a word
// reaches every bit of the hash. Tells files apart; resists nobody who wants a collision.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), 8);
      add(word);
    }
    uint64_t tail = bytes.size();  // so that "a" + "b" and "ab" differ
    for (char c : bytes) tail = tail << 8 | static_cast<unsigned char>(c);
    add(tail);
  }
  void add(uint64_t word) {
    state_ = (state_ ^ word) * 0x100000001b3;
    state_ ^= state_ >> 32;
  }
  std::string hex() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state_));
    return text;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace

std::string fingerprint(const std::string& path,
                        const std::map<std::string, std::string>& attributes) {
  constexpr int64_t kEdge = 64 << 10, kSample = 4 << 10, kSamples = 64;
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // each read is one system call, of the size asked
  file.open(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(Code::not_found, "cannot read " + path);
  const int64_t size = file.tellg();

  Hash hash;
  hash.add(static_cast<uint64_t>(size));
  std::vector<char> bytes(kEdge);
  auto add = [&](int64_t offset, int64_t count) {
    file.seekg(offset);
    file.read(bytes.data(), std::min(count, size - offset));
    hash.add(std::string_view(bytes.data(), file.gcount()));
  };
  add(0, kEdge);
  for (int64_t i = 1; i <= kSamples; ++i) add(size / (kSamples + 1) * i, kSample);
  add(std::max<int64_t>(0, size - kEdge), kEdge);
  if (!file) throw Error(Code::data_loss, "cannot read " + path);

  for (const auto& [name, value] : attributes) {
    hash.add(name);
    hash.add(value);
  }
  return hash.hex();
}

}  // namespace torch_tpu::pjrt
