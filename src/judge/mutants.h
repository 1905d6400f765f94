// Wrong outputs made from the right one, for task_check.
#ifndef HONE_JUDGE_MUTANTS_H
#define HONE_JUDGE_MUTANTS_H

#include <optional>
#include <string>
#include <vector>

#include "contract/task.h"

namespace hone {

struct Mutant {
  std::string name;
  std::vector<double> output;       // dense row-major, like the reference
};

// Zeros, a constant, one element off, x1.5, two rows swapped, copies of inputs of the same shape.
// Only those that differ from the reference in a valid element.
std::vector<Mutant> mutants_of(const TensorShape& shape, const std::vector<Region>& regions, const std::vector<double>& reference,
                               const std::vector<HostTensor>& inputs);

// Inputs as a faulty kernel would read them: an operand's second block repeats its first, a scale
// stays at its first value. The oracle on such inputs gives the mutant.
struct InputMutation {
  std::string name;                 // "A: second half of each row repeats the first"
  std::string tensor;
};
std::vector<InputMutation> input_mutations(const Task& task, const Workload& workload);
// Changes the tensor's elements in `data` (laid out as `shape` says).
void apply(const InputMutation& mutation, const Task& task, const TensorShape& shape, std::byte* data);

}  // namespace hone

#endif
