// oneDNN's softmax; the primitive is made once, only addresses change from call to call.
#include <dnnl.hpp>
#include <hone/task.h>
#include <omp.h>

#include <cstdio>
#include <exception>
#include <optional>

namespace {

using dnnl::memory;

struct State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  memory::desc shape;
  std::optional<dnnl::softmax_forward> primitive;
  memory x, y;
  char description[160];
};

}  // namespace

void* hone_baseline_open(const hone::TaskCall* call) {
  try {
    omp_set_num_threads(call->workers);
    auto* state = new State;
    state->shape = memory::desc({call->axis("M"), call->axis("N")}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::softmax_forward::primitive_desc made({dnnl::prop_kind::forward_inference, state->shape, 1}, state->engine);
    state->primitive.emplace(made);
    state->x = memory(state->shape, state->engine, nullptr);
    state->y = memory(state->shape, state->engine, nullptr);
    const dnnl_version_t* version = dnnl_version();
    std::snprintf(state->description, sizeof state->description, "oneDNN %d.%d.%d, %s, %d thread%s", version->major, version->minor,
                  version->patch, made.impl_info_str(), call->workers, call->workers == 1 ? "" : "s");
    return state;
  } catch (const std::exception& error) {
    call->fail(call->sink, error.what());
    return nullptr;
  }
}

void hone_baseline_run(void* opaque, const hone::TaskCall* call) {
  auto& state = *static_cast<State*>(opaque);
  try {
    omp_set_num_threads(call->workers);
    state.x.set_data_handle(call->data<float>("x"));
    state.y.set_data_handle(call->data<float>("y"));
    state.primitive->execute(state.stream, {{DNNL_ARG_SRC, state.x}, {DNNL_ARG_DST, state.y}});
    state.stream.wait();
  } catch (const std::exception& error) {
    call->fail(call->sink, error.what());
  }
}

const char* hone_baseline_describe(void* state) { return static_cast<State*>(state)->description; }
