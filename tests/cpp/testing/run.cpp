// SPDX-License-Identifier: Apache-2.0
#include "testing/run.h"

#include <map>
#include <numeric>

#include "testing/plugins.h"

namespace torch_tpu::test {

Arrays run(const pjrt::Client& client, const std::string& stablehlo, const Arrays& inputs) {
  PJRT_Device* device = client.devices()[0];
  static auto& programs =
      *new std::map<std::pair<const pjrt::Client*, std::string>, pjrt::LoadedExecutable>;
  const auto key = std::pair(&client, stablehlo);
  auto it = programs.find(key);
  if (it == programs.end())
    it = programs.emplace(key, client.compile(stablehlo, client.options_for(stablehlo))).first;
  const pjrt::LoadedExecutable& program = it->second;

  std::vector<pjrt::Buffer> arguments;
  std::vector<PJRT_Buffer*> handles;
  for (const Array& input : inputs) {
    arguments.push_back(client.from_host(input.bytes.data(), input.type, device));
    handles.push_back(arguments.back().get());
  }
  std::vector<int64_t> kept(inputs.size());
  std::iota(kept.begin(), kept.end(), 0);
  std::vector<PJRT_Buffer*> results(program.num_outputs());
  program.execute(device, handles.data(), handles.size(), kept.data(), kept.size(), results.data());

  Arrays outputs;
  for (PJRT_Buffer* handle : results) {
    pjrt::Buffer result(client.plugin().api(), handle);
    Array output{result.type(), {}};
    output.bytes.resize(output.type.nbytes());
    result.to_host(output.bytes.data(), output.type.nbytes()).wait();
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Arrays run(const std::string& stablehlo, const Arrays& inputs) {
  return run(default_client(), stablehlo, inputs);
}

Arrays run(const hlo::Module& module, const Arrays& inputs) {
  Arrays arguments;
  for (int parameter : module.inputs) arguments.push_back(inputs.at(parameter));
  return run(module.text, arguments);
}

}  // namespace torch_tpu::test
