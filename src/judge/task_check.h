// Proof that a task is sane: its oracle accepts every baseline on all data, and its gates refuse
// wrong outputs that people and machines have handed in before.
#ifndef HONE_JUDGE_TASK_CHECK_H
#define HONE_JUDGE_TASK_CHECK_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "judge/judge.h"

namespace hone {

// One wrong output on one workload's data, and what the gate said.
struct MutantResult {
  std::string workload, input_set, tensor;
  std::string mutant;               // "zeros", "rows swapped", "A: second half repeats the first", ...
  double value = 0, limit = 0;      // of the gate's metric, worst region
  double largest_reference = 0;
  bool refused = false;
};

struct BaselineResult {
  std::string baseline, workload, input_set;
  double value = 0, limit = 0;
};

struct FloorResult {
  std::string workload;
  double flops = 0, bytes = 0, seconds = 0;
};

struct TaskCheck {
  std::string task;
  int data_sets = 0;                       // workloads x input sets
  std::vector<MutantResult> mutants;       // every one that was tried
  std::vector<BaselineResult> baselines;
  std::vector<FloorResult> floors;
  std::vector<Error> faults;               // kind contract; empty: sane
  std::vector<std::string> notes;          // blind spots of hard sets, mutants that nowhere apply
  std::vector<std::string> left_out;       // what was not tried, and why
  bool sane() const { return faults.empty(); }
};

// A Result error when the task could not be tried at all.
Result<TaskCheck> check_task(const Task& task, Bench bench, const Progress& progress, const std::atomic<bool>* cancel);

nlohmann::json to_json(const TaskCheck& check);     // hone.task_check/1
// One row a mutant, with where it came nearest to passing; faults; "sane" or the count of faults.
std::string to_text(const TaskCheck& check);

}  // namespace hone

#endif
