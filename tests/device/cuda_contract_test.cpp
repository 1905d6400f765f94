#include "device/contract.h"
#include "device/cuda_subject.h"

namespace hone::testing {
namespace {

std::unique_ptr<Subject> gpu() { return CudaSubject::make(); }

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceContract, ::testing::Values(MakeSubject(gpu)),
                         [](const ::testing::TestParamInfo<MakeSubject>&) { return std::string("Gpu"); });

TEST(CudaSources, Compile) {
  for (const std::string& name : cuda_object_names()) {
    const auto object = cuda_object(name);
    if (!object && object.error().kind == ErrorKind::no_compiler) GTEST_SKIP() << "no nvcc";
    HONE_ASSERT_OK(object);
    EXPECT_GT(fs::file_size(*object), 1000u) << name;
  }
}

}  // namespace
}  // namespace hone::testing
