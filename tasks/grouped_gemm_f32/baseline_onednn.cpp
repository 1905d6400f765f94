// oneDNN, one matmul a group. Primitives are made once for each row count; only addresses change
// from call to call.
#include <dnnl.hpp>
#include <hone/task.h>
#include <omp.h>

#include <cstdio>
#include <exception>
#include <map>

namespace {

using dnnl::memory;

struct Matmul {
  dnnl::matmul primitive;
  memory a, b, d;
};

struct State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<int, Matmul> by_rows;
  char description[160];

  Matmul& get(int rows, const hone::TaskCall& call) {
    const auto found = by_rows.find(rows);
    if (found != by_rows.end()) return found->second;
    const memory::dim m = rows, n = call.axis("N"), k = call.axis("K"), pitch = call.tensor("D").strides[0];
    const auto f32 = memory::data_type::f32;
    const memory::desc a({m, k}, f32, memory::dims{k, 1}), b({k, n}, f32, memory::dims{1, k}), d({m, n}, f32, memory::dims{pitch, 1});
    const dnnl::matmul::primitive_desc made({a, b, d}, engine);
    return by_rows.emplace(rows, Matmul{dnnl::matmul(made), memory(a, engine, nullptr), memory(b, engine, nullptr), memory(d, engine, nullptr)})
        .first->second;
  }
};

const char* isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41: return "SSE4.1";
    case dnnl::cpu_isa::avx: return "AVX";
    case dnnl::cpu_isa::avx2: return "AVX2";
    case dnnl::cpu_isa::avx2_vnni: return "AVX2 VNNI";
    case dnnl::cpu_isa::avx512_core: return "AVX512";
    case dnnl::cpu_isa::avx512_core_vnni: return "AVX512 VNNI";
    case dnnl::cpu_isa::avx512_core_bf16: return "AVX512 BF16";
    case dnnl::cpu_isa::avx512_core_amx: return "AMX";
    default: return "other";
  }
}

}  // namespace

void* hone_baseline_open(const hone::TaskCall* call) {
  try {
    omp_set_num_threads(call->workers);
    auto* state = new State;
    for (std::int64_t g = 0; g < call->axis("G"); ++g)
      if (const auto rows = static_cast<int>(call->axis("rows", g)); rows > 0) state->get(rows, *call);
    const dnnl_version_t* version = dnnl_version();
    std::snprintf(state->description, sizeof state->description, "oneDNN %d.%d.%d, %s, %d thread%s", version->major, version->minor,
                  version->patch, isa_name(), call->workers, call->workers == 1 ? "" : "s");
    return state;
  } catch (const std::exception& error) {
    call->fail(call->sink, error.what());
    return nullptr;
  }
}

void hone_baseline_run(void* opaque, const hone::TaskCall* call) {
  auto& state = *static_cast<State*>(opaque);
  const auto* starts = call->data<std::int32_t>("starts");
  const auto* rows = call->data<std::int32_t>("rows");
  auto* a = call->data<float>("A");
  auto* b = call->data<float>("B");
  const hone::TaskTensor& d = call->tensor("D");
  const std::int64_t n = call->axis("N"), k = call->axis("K");
  try {
    omp_set_num_threads(call->workers);
    for (std::int64_t g = 0; g < call->axis("G"); ++g) {
      if (rows[g] == 0) continue;
      Matmul& matmul = state.get(rows[g], *call);
      matmul.a.set_data_handle(a + starts[g] * k);
      matmul.b.set_data_handle(b + g * n * k);
      matmul.d.set_data_handle(static_cast<float*>(d.data) + starts[g] * d.strides[0]);
      matmul.primitive.execute(state.stream, {{DNNL_ARG_SRC, matmul.a}, {DNNL_ARG_WEIGHTS, matmul.b}, {DNNL_ARG_DST, matmul.d}});
    }
    state.stream.wait();
  } catch (const std::exception& error) {
    call->fail(call->sink, error.what());
  }
}

const char* hone_baseline_describe(void* state) { return static_cast<State*>(state)->description; }
