// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <filesystem>
#include <mutex>

#include "pjrt/args.h"
#include "pjrt/client.h"
#include "pjrt/fingerprint.h"
#include "pjrt/named_values.h"

namespace torch_tpu::pjrt {
namespace {

// XLA's own client draws the line here too.
constexpr int kOldestMinor = 29;

// The plugin's function table. Throws Error, naming `path`, if the file is no plugin.
const PJRT_Api* open(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(Code::not_found,
                "PJRT plugin " + path +
                    " does not exist. Install xla-cpu-pjrt (CPU) or libtpu (TPU), or "
                    "set TORCH_TPU_PLATFORM to the path of a PJRT plugin.");
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(Code::failed_precondition,
                "PJRT plugin " + path + " cannot be loaded: " + dlerror());
  }
  const auto get_api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    throw Error(Code::invalid_argument,
                path + " is not a PJRT plugin: it has no function GetPjrtApi.");
  }
  const PJRT_Api* api = get_api();
  if (api == nullptr)
    throw Error(Code::internal, "PJRT plugin " + path + ": GetPjrtApi returned nothing.");
  return api;
}

void check_version(const std::string& path, const PJRT_Api_Version& version) {
  const int major = version.major_version, minor = version.minor_version;
  if (major == PJRT_API_MAJOR && minor >= kOldestMinor) return;
  const bool plugin_is_newer = major > PJRT_API_MAJOR;
  throw Error(
      Code::failed_precondition,
      "PJRT plugin " + path + " speaks version " + std::to_string(major) + "." +
          std::to_string(minor) + " of the PJRT C API; torch_tpu was built for " +
          std::to_string(PJRT_API_MAJOR) + "." + std::to_string(PJRT_API_MINOR) + " and takes " +
          std::to_string(PJRT_API_MAJOR) + "." + std::to_string(kOldestMinor) +
          " and later of the same major version. " +
          (plugin_is_newer
               ? "Install an older plugin or a torch_tpu built against a newer xla-cpu-pjrt."
               : "Install a newer plugin."));
}

std::map<std::string, std::string> attributes_of(const PJRT_Api* api) {
  Args<PJRT_Plugin_Attributes_Args> args;
  check(api, api->PJRT_Plugin_Attributes(args), "PJRT_Plugin_Attributes");
  return to_text(args->attributes, args->num_attributes);
}

}  // namespace

const Plugin& Plugin::load(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded =
      *new std::map<std::string, std::unique_ptr<const Plugin>>;  // by the path behind symlinks
  std::error_code no_such_file;
  std::string real_path = std::filesystem::canonical(path, no_such_file);
  if (no_such_file) real_path = path;  // open() says what is wrong

  std::lock_guard lock(mutex);
  std::unique_ptr<const Plugin>& entry = loaded[real_path];
  if (entry) return *entry;
  auto plugin = std::unique_ptr<Plugin>(new Plugin);
  plugin->path_ = real_path;
  plugin->api_ = open(real_path);
  check_version(real_path, plugin->api_->pjrt_api_version);
  Args<PJRT_Plugin_Initialize_Args> args;
  check(plugin->api_, plugin->api_->PJRT_Plugin_Initialize(args), "PJRT_Plugin_Initialize");
  plugin->attributes_ = attributes_of(plugin->api_);
  plugin->fingerprint_ = pjrt::fingerprint(real_path, plugin->attributes_);
  entry = std::move(plugin);
  return *entry;
}

int Plugin::api_minor() const { return api_->pjrt_api_version.minor_version; }

const void* Plugin::extension(int type) const {
  for (const PJRT_Extension_Base* e = api_->extension_start; e != nullptr; e = e->next) {
    if (number(e->type) == type) return e;
  }
  return nullptr;
}

}  // namespace torch_tpu::pjrt
