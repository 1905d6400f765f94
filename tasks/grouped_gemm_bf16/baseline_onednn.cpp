// oneDNN, one matmul a group: in BF16 where the library has it for this CPU (AVX512), else each
// panel of operands is widened to float32 inside the call and the float32 matmul is used.
#include <dnnl.hpp>
#include <hone/task.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <utility>
#include <vector>

namespace {

using dnnl::memory;
using Int = std::int64_t;

constexpr Int kPanel = 256;   // columns of D widened at a time: the panel of B stays in the second-level cache

struct Matmul {
  dnnl::matmul primitive;
  memory a, b, d;
};

void widen(const hone::bf16* from, Int count, float* to) {
  for (Int i = 0; i < count; ++i) to[i] = hone::to_float(from[i]);
}
void narrow(const float* from, Int count, hone::bf16* to) {
  for (Int i = 0; i < count; ++i) to[i] = hone::to_bf16(from[i]);
}

struct State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  bool native = false;
  std::map<std::pair<Int, Int>, Matmul> by_size;   // rows, columns
  std::vector<float> a, b, d;                      // widened panels
  char description[160];

  // Rows of D lie `pitch` elements apart.
  Matmul& get(Int m, Int n, Int k, Int pitch, memory::data_type type) {
    const auto found = by_size.find({m, n});
    if (found != by_size.end()) return found->second;
    const memory::desc a_desc({m, k}, type, memory::dims{k, 1}), b_desc({k, n}, type, memory::dims{1, k}), d_desc({m, n}, type, memory::dims{pitch, 1});
    const dnnl::matmul::primitive_desc made({a_desc, b_desc, d_desc}, engine);
    Matmul matmul{dnnl::matmul(made), memory(a_desc, engine, nullptr), memory(b_desc, engine, nullptr), memory(d_desc, engine, nullptr)};
    return by_size.emplace(std::pair(m, n), std::move(matmul)).first->second;
  }

  void run(Matmul& matmul, const void* a_data, const void* b_data, void* d_data) {
    matmul.a.set_data_handle(const_cast<void*>(a_data));
    matmul.b.set_data_handle(const_cast<void*>(b_data));
    matmul.d.set_data_handle(d_data);
    matmul.primitive.execute(stream, {{DNNL_ARG_SRC, matmul.a}, {DNNL_ARG_WEIGHTS, matmul.b}, {DNNL_ARG_DST, matmul.d}});
  }

  void run_widened(Int m, Int n, Int k, const hone::bf16* a_data, const hone::bf16* b_data, hone::bf16* d_data, Int pitch) {
    a.resize(static_cast<std::size_t>(m * k));
    b.resize(static_cast<std::size_t>(kPanel * k));
    d.resize(static_cast<std::size_t>(m * kPanel));
    float *const wide_a = a.data(), *const wide_b = b.data(), *const wide_d = d.data();
#pragma omp parallel for
    for (Int i = 0; i < m; ++i) widen(a_data + i * k, k, wide_a + i * k);
    for (Int from = 0; from < n; from += kPanel) {
      const Int columns = std::min(kPanel, n - from);
#pragma omp parallel for
      for (Int j = 0; j < columns; ++j) widen(b_data + (from + j) * k, k, wide_b + j * k);
      run(get(m, columns, k, kPanel, memory::data_type::f32), wide_a, wide_b, wide_d);
      stream.wait();
#pragma omp parallel for
      for (Int i = 0; i < m; ++i) narrow(wide_d + i * kPanel, columns, d_data + i * pitch + from);
    }
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
    const Int n = call->axis("N"), k = call->axis("K"), pitch = call->tensor("D").strides[0];
    try {
      state->get(8, n, k, pitch, memory::data_type::bf16);
      state->native = true;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
    for (Int g = 0; g < call->axis("G"); ++g) {
      const Int rows = call->axis("rows", g);
      if (rows == 0) continue;
      if (state->native) state->get(rows, n, k, pitch, memory::data_type::bf16);
      for (Int from = 0; !state->native && from < n; from += kPanel) state->get(rows, std::min(kPanel, n - from), k, kPanel, memory::data_type::f32);
    }
    const dnnl_version_t* version = dnnl_version();
    std::snprintf(state->description, sizeof state->description, "oneDNN %d.%d.%d, %s, %s, %d thread%s", version->major, version->minor,
                  version->patch, isa_name(), state->native ? "BF16 matmul" : "no BF16 matmul for this CPU: widened to float32",
                  call->workers, call->workers == 1 ? "" : "s");
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
  const auto* a = call->data<hone::bf16>("A");
  const auto* b = call->data<hone::bf16>("B");
  auto* d = call->data<hone::bf16>("D");
  const Int n = call->axis("N"), k = call->axis("K"), pitch = call->tensor("D").strides[0];
  try {
    omp_set_num_threads(call->workers);
    for (Int g = 0; g < call->axis("G"); ++g) {
      if (rows[g] == 0) continue;
      const hone::bf16 *const a_g = a + starts[g] * k, *const b_g = b + g * n * k;
      hone::bf16* const d_g = d + starts[g] * pitch;
      if (state.native) state.run(state.get(rows[g], n, k, pitch, memory::data_type::bf16), a_g, b_g, d_g);
      else state.run_widened(rows[g], n, k, a_g, b_g, d_g, pitch);
    }
    state.stream.wait();
  } catch (const std::exception& error) {
    call->fail(call->sink, error.what());
  }
}

const char* hone_baseline_describe(void* state) { return static_cast<State*>(state)->description; }
