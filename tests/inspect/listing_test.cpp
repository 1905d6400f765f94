#include "inspect/listing.h"

#include <gtest/gtest.h>

#include <random>

namespace hone {
namespace {

std::size_t count(const KernelCode& code, OpClass kind) { return code.mix[static_cast<std::size_t>(kind)]; }

const char* const kPtx = R"(.version 9.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
.visible .entry _Z4gemmPKf(
	.param .u64 _Z4gemmPKf_param_0
)
.maxntid 384, 1, 1
{
	.reg .pred 	%p<3>;
	.shared .align 8 .b8 full[16];
	.loc	1 12 3
	ld.param.u64 	%rd1, [_Z4gemmPKf_param_0];   // a comment; with a semicolon
	@!%p1 bra 	$L__BB0_2;
$L__BB0_1:
	.loc	1 13 5, function_name $L__info_string0, inlined_at 1 12 3
	// begin inline asm
	{ .reg .pred p; setp.ne.b32 p, %r1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2}, %rd1, %rd2, p, 1, 1, 0, 0; }
	// end inline asm
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], %r5;
	ld.volatile.shared.v2.f32 	{%f1, %f2}, [%r1];
	fma.rn.f32 	%f3, %f1, %f2, %f3;
	fma.rn.bf16x2 	%r7, %r8, %r9, %r7;
	.loc	2 7 1
	st.global.f32 	[%rd2], %f3;
	st.local.f32 	[%rd3], %f3;
	atom.global.add.f32 	%f4, [%rd2], %f3;
$L__BB0_2:
	ret;

}
	.file	1 "/hone/src/kernel.cu"
	.file	2 "/hone/include/hone/ptx.cuh"
	.section	.debug_str
	{
$L__info_string0:
.b8 98
	}
)";

TEST(Listing, CountsPtxByClassAndLine) {
  const Listing listing = read_ptx(kPtx);
  ASSERT_EQ(listing.size(), 1u) << "declarations and data are no code";
  const KernelCode& code = listing.at("_Z4gemmPKf");
  EXPECT_EQ(code.instructions, 13u);
  for (const OpClass kind : {OpClass::constant, OpClass::tensor, OpClass::async, OpClass::barrier, OpClass::shared_load, OpClass::fp32, OpClass::fp16,
                             OpClass::global_store, OpClass::local_store, OpClass::atomic, OpClass::integer})
    EXPECT_EQ(count(code, kind), 1u) << name_of(kind);
  EXPECT_EQ(count(code, OpClass::branch), 2u);
  using Place = std::pair<std::string, int>;
  EXPECT_EQ(code.lines.at(Place("/hone/src/kernel.cu", 12)), 2u);
  EXPECT_EQ(code.lines.at(Place("/hone/src/kernel.cu", 13)), 7u);
  EXPECT_EQ(code.lines.at(Place("/hone/include/hone/ptx.cuh", 7)), 4u);
}

TEST(Listing, HostilePtxIsCountedOrLeftOut) {
  for (const char* text : {"", ".entry", ".entry (", ".entry f(", ".entry f({", ".func (", "{{{{", "}}}}", ".visible .entry f() { @%p", ".visible .entry f() { a: b: ; ; }",
                           ".visible .entry f() { \"", ".file", ".file 1", ".visible .entry f() {\n.loc 9 9 9\nadd.s32 a;", "//", ".visible .entry f() { x::"})
    EXPECT_LE(read_ptx(text).size(), 1u) << text;
}

const char* const kSass = R"(	.target	sm_90a
//--------------------- .text._Z4gemmPKf      --------------------------
	.section	.text._Z4gemmPKf,"ax",@progbits
        .type           _Z4gemmPKf,@function
_Z4gemmPKf:
.text._Z4gemmPKf:
	//## File "/hone/include/hone/ptx.cuh", line 30 inlined at "/hone/src/kernel.cu", line 12
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], !UPT ;
	//## File "/hone/src/kernel.cu", line 13
        /*0020*/                   UTMALDG.2D [UR8], [UR4], desc[UR6] ;
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2+URZ], R3 ;
        /*0040*/                   UIADD3 UR4, UR4, 0x1, URZ ;
        /*0050*/                   LDSM.16.M88.4 R4, [R2] ;
        /*0060*/                   STL [R1], R2 ;
.L_x_1:
        /*0070*/                   EXIT ;
        /*0080*/                   NOP;
//--------------------- .text._Z5plainv      --------------------------
.text._Z5plainv:
        /*0000*/                   FFMA R1, R2, R3, R4 ;
)";

TEST(Listing, CountsSassWithoutPadding) {
  const Listing listing = read_sass(kSass);
  ASSERT_EQ(listing.size(), 2u);
  const KernelCode& code = listing.at("_Z4gemmPKf");
  EXPECT_EQ(code.instructions, 8u);
  for (const OpClass kind : {OpClass::constant, OpClass::tensor, OpClass::async, OpClass::barrier, OpClass::integer, OpClass::shared_load, OpClass::local_store, OpClass::branch})
    EXPECT_EQ(count(code, kind), 1u) << name_of(kind);
  using Place = std::pair<std::string, int>;
  EXPECT_EQ(code.lines.at(Place("/hone/include/hone/ptx.cuh", 30)), 2u);
  EXPECT_EQ(code.lines.at(Place("/hone/src/kernel.cu", 13)), 6u);
  EXPECT_EQ(count(listing.at("_Z5plainv"), OpClass::fp32), 1u);
}

TEST(Listing, DamagedTextsDoNoHarm) {
  std::mt19937 random(1);
  for (const char* whole : {kPtx, kSass})
    for (int i = 0; i < 2000; ++i) {
      std::string text = whole;
      for (int k = 0; k < 4; ++k) text[random() % text.size()] = "{}();:,\"/*@.\n a"[random() % 15];
      text.resize(text.size() - random() % text.size());
      EXPECT_LE(read_ptx(text).size() + read_sass(text).size() + read_objdump(text).size(), 50u);
    }
}

TEST(Listing, ReadsCuobjdumpToo) {
  const Listing listing = read_sass(R"(		Function : _Z5plainv
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDG.E R2, desc[UR6][R2.64] ;              /* 0x0000000602027981 */
                                                                             /* 0x000ea8000c1e1900 */
)");
  EXPECT_EQ(listing.at("_Z5plainv").instructions, 1u);
  EXPECT_EQ(count(listing.at("_Z5plainv"), OpClass::global_load), 1u);
}

TEST(Listing, CountsX86) {
  const Listing listing = read_objdump("\n0000000000001100 <_Z4kernv>:\n_Z4kernv():\n/hone/src/kernel.cpp:2 (discriminator 3)\n"
                                       "    1100:\tvmovups (%rdi,%rax,1),%zmm0\n    1106:\tvfmadd231ps %zmm0,%zmm1,%zmm2\n"
                                       "    110c:\tvmovups %zmm2,(%rsi)\n    1112:\tmov    %rdx,%r8\n    1115:\tjne    1100 <_Z4kernv>\n    1117:\tnopw   0x0(%rax,%rax,1)\n");
  const KernelCode& code = listing.at("_Z4kernv");
  EXPECT_EQ(code.instructions, 5u);
  for (const OpClass kind : {OpClass::global_load, OpClass::fp32, OpClass::global_store, OpClass::move, OpClass::branch}) EXPECT_EQ(count(code, kind), 1u) << name_of(kind);
  EXPECT_EQ(code.lines.at(std::pair<std::string, int>("/hone/src/kernel.cpp", 2)), 5u);
}

}  // namespace
}  // namespace hone
