#include "inspect/mix.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hone {
namespace {

constexpr std::pair<OpClass, std::string_view> kNames[] = {
#define HONE_OP_NAME(name, text) {OpClass::name, #name},
    HONE_OP_CLASSES(HONE_OP_NAME)
#undef HONE_OP_NAME
};

struct Row {
  OpClass kind;
  std::string_view opcodes;   // between blanks; one that ends in `*` is a prefix
};

bool holds(std::string_view opcodes, std::string_view opcode) {
  while (!opcodes.empty()) {
    const std::size_t end = std::min(opcodes.find(' '), opcodes.size());
    std::string_view one = opcodes.substr(0, end);
    opcodes.remove_prefix(std::min(end + 1, opcodes.size()));
    if (one.ends_with('*') ? opcode.starts_with(one.substr(0, one.size() - 1)) : opcode == one) return true;
  }
  return false;
}

template <std::size_t N>
OpClass find(const Row (&rows)[N], std::string_view opcode) {
  for (const Row& row : rows)
    if (holds(row.opcodes, opcode)) return row.kind;
  return OpClass::other;
}

// The first row that fits counts. Names: CUDA Binary Utilities, "Instruction Set Reference".
constexpr Row kSass[] = {
    {OpClass::tensor,
     "HGMMA QGMMA IGMMA BGMMA HMMA IMMA DMMA BMMA QMMA OMMA UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCMXQMMA LDTM STTM UTCCP "
     "UTCSHIFT"},
    {OpClass::async,
     "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACMDFLUSH UTMACCTL UBLKCP UBLKRED UBLKPF LDGSTS CCTL CCTLL CCTLT"},
    {OpClass::shared_load, "LDS LDSM"},
    {OpClass::shared_store, "STS STSM STAS"},
    {OpClass::local_load, "LDL"},
    {OpClass::local_store, "STL"},
    {OpClass::constant, "LDC LDCU ULDC"},
    {OpClass::global_load, "LDG LD"},
    {OpClass::global_store, "STG ST"},
    {OpClass::atomic, "ATOM ATOMG ATOMS RED REDG REDAS UREDGR"},
    {OpClass::barrier,
     "BAR SYNCS MEMBAR FENCE WARPGROUP WARPGROUPSET DEPBAR LDGDEPBAR LDSDEPBAR ERRBAR CGAERRBAR UCGABAR_* WARPSYNC "
     "ARRIVES ACQBULK "
     "USETMAXREG UTCBAR UTCATOMSWS NANOSLEEP B2R PREEXIT"},
    {OpClass::warp, "SHFL VOTE VOTEU MATCH REDUX CREDUX ELECT"},
    {OpClass::branch,
     "BRA BRX BRXU JMP JMX CALL RET EXIT BSSY BSYNC BREAK BMOV YIELD KILL BPT RPCMOV ENDCOLLECTIVE COLLECTIVE "
     "WARPEXIT"},
    {OpClass::fp64, "DADD DMUL DFMA DSETP DMNMX DSET"},
    {OpClass::fp16, "HADD2* HMUL2* HFMA2* HSETP2 HSET2 HMNMX2"},
    {OpClass::fp32, "FADD* FMUL* FFMA* FMNMX* FSETP FSET FSEL FCHK FSWZADD MUFU"},
    {OpClass::convert, "F2F F2FP F2I F2IP I2F I2FP I2I I2IP FRND"},
    {OpClass::move, "MOV MOV32I MOVM S2R S2UR CS2R R2UR UR2UP R2P P2R GETLMEMBASE SETLMEMBASE LEPC"},
    {OpClass::integer,
     "IADD* IMAD* IMUL* ISETP ISET ISCADD LEA LOP LOP3 LOP32I SHF SHL SHR IABS IMNMX VIADD* VIMNMX* VABSDIFF* PRMT SEL "
     "POPC FLO BREV "
     "BMSK SGXT IDP* PLOP3 PSETP CSEL ISEL"},
};

constexpr Row kPtx[] = {
    {OpClass::tensor, "wgmma.mma_async* mma.* wmma.* tcgen05.mma* tcgen05.ld* tcgen05.st* tcgen05.cp* tcgen05.shift*"},
    {OpClass::barrier,
     "wgmma.* tcgen05.* cp.async.bulk.commit_group* cp.async.bulk.wait_group* cp.async.commit_group* "
     "cp.async.wait_group* cp.async.wait_all* "
     "cp.async.mbarrier* bar.* barrier.* mbarrier.* fence.* membar.* griddepcontrol.* setmaxnreg.* nanosleep.*"},
    {OpClass::async, "cp.* prefetch.* prefetchu.* applypriority.* discard.* tensormap.*"},
    {OpClass::shared_load, "ldmatrix.*"},
    {OpClass::shared_store, "stmatrix.* st.async*"},
    {OpClass::atomic, "atom.* red.* multimem.*"},
    {OpClass::warp, "shfl.* vote.* match.* redux.* elect.* activemask.*"},
    {OpClass::branch, "bra bra.* brx.* call call.* ret ret.* exit trap brkpt"},
    {OpClass::convert, "cvt.*"},
    {OpClass::move, "mov.* cvta.* mapa.* getctarank.* isspacep.* movmatrix.*"},
};

constexpr Row kX86[] = {
    {OpClass::tensor, "vdpbf16ps vpdpbusd* vpdpwssd* tdp* tile*"},
    {OpClass::async, "prefetch*"},
    {OpClass::barrier, "mfence sfence lfence pause clflush*"},
    {OpClass::branch, "call* ret* j*"},
    {OpClass::convert, "cvt* vcvt*"},
};

// What an arithmetic instruction works on: the last part that is a type.
OpClass class_of_type(std::string_view opcode) {
  while (!opcode.empty()) {
    const std::size_t dot = opcode.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? opcode : opcode.substr(dot + 1);
    if (part == "f32" || part == "f32x2") return OpClass::fp32;
    if (part == "f64") return OpClass::fp64;
    if (part == "f16" || part == "f16x2" || part == "bf16" || part == "bf16x2") return OpClass::fp16;
    if (part == "pred" || (part.size() >= 2 && part.size() <= 5 &&
                           (part[0] == 's' || part[0] == 'u' || part[0] == 'b') && part[1] >= '1' && part[1] <= '9'))
      return OpClass::integer;
    if (dot == std::string_view::npos) break;
    opcode = opcode.substr(0, dot);
  }
  return OpClass::other;
}

bool has_part(std::string_view opcode, std::string_view part) {
  for (std::size_t at = opcode.find('.'); at != std::string_view::npos; at = opcode.find('.', at + 1))
    if (opcode.substr(at + 1).starts_with(part)) return true;
  return false;
}

}  // namespace

std::string_view name_of(OpClass kind) { return kNames[static_cast<std::size_t>(kind)].second; }

OpClass class_of_ptx(std::string_view opcode) {
  if (const OpClass kind = find(kPtx, opcode); kind != OpClass::other) return kind;
  const bool load = opcode.starts_with("ld.") || opcode.starts_with("ldu."), store = opcode.starts_with("st.");
  if (!load && !store) return class_of_type(opcode);
  if (has_part(opcode, "param") || has_part(opcode, "const")) return store ? OpClass::move : OpClass::constant;   // st.param: of a call
  if (has_part(opcode, "shared")) return load ? OpClass::shared_load : OpClass::shared_store;
  if (has_part(opcode, "local")) return load ? OpClass::local_load : OpClass::local_store;
  return load ? OpClass::global_load : OpClass::global_store;
}

OpClass class_of_sass(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  const OpClass kind = find(kSass, base);
  // Most operations have a form for uniform registers: UIADD3 is IADD3.
  return kind == OpClass::other && base.starts_with('U') ? find(kSass, base.substr(1)) : kind;
}

OpClass class_of_x86(std::string_view opcode, std::string_view operands) {
  if (opcode == "lock" || opcode.starts_with("xchg") || opcode.starts_with("cmpxchg")) return OpClass::atomic;
  if (const OpClass kind = find(kX86, opcode); kind != OpClass::other) return kind;
  const std::string_view plain = opcode.starts_with('v') ? opcode.substr(1) : opcode;
  if (plain.starts_with("mov") || plain.starts_with("lddqu") || plain.starts_with("broadcast") ||
      plain.starts_with("pbroadcast") || plain.starts_with("push") || plain.starts_with("pop") ||
      plain.starts_with("gather") || plain.starts_with("scatter")) {
    while (operands.ends_with(' ')) operands.remove_suffix(1);
    if (plain.starts_with("push") || operands.ends_with(')')) return OpClass::global_store;
    return plain.starts_with("pop") || operands.find('(') != std::string_view::npos ? OpClass::global_load : OpClass::move;
  }
  if (plain.ends_with("ps") || plain.ends_with("ss"))
    return plain.starts_with('p') && opcode.starts_with('v') && plain != "permps" ? OpClass::integer : OpClass::fp32;
  if (plain.ends_with("pd") || (plain.ends_with("sd") && !plain.starts_with('p'))) return OpClass::fp64;
  if (plain.ends_with("ph") || plain.ends_with("sh")) return OpClass::fp16;
  return opcode == "vzeroupper" ? OpClass::other : OpClass::integer;
}

}  // namespace hone
