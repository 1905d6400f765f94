// The CUDA device under test, with code compiled by nvcc as the test goes. Where nvcc is but no GPU, the code is still
// compiled (CudaSources.Compile), so that a change that breaks it is seen.
#ifndef HONE_TESTS_DEVICE_CUDA_SUBJECT_H
#define HONE_TESTS_DEVICE_CUDA_SUBJECT_H

#include "device/cuda/session.h"
#include "device/subject.h"

namespace hone::testing {

class CudaSubject final : public Subject {
 public:
  static std::unique_ptr<CudaSubject> make();

  std::string missing() const override { return missing_; }
  Device& device() override { return *device_; }
  ErrorKind null_store_kind() const override { return ErrorKind::illegal_address; }
  Result<Executable> program(const std::string& name, Plan plan) override;   // kernels of the contract suite, and more

 private:
  std::string missing_;
  std::unique_ptr<Device> device_;
};

// Objects by the name of a source below: a cubin of kernels or helpers, a shared object of task code or a baseline. Kept
// in $HONE_TEST_OBJECTS, when that is set: made on one machine, used on another that has the same sources.
Result<fs::path> cuda_object(const std::string& name);
std::vector<std::string> cuda_object_names();

}  // namespace hone::testing

#endif
