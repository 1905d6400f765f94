#include "device/cpu/tripwire.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/topology.h"

namespace hone::cpu {

Tripwires::Tripwires(std::span<const TripwireBuffer> inputs, std::span<const TripwireBuffer> outputs, const Draw& draw) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(draw() % limit); };
  for (std::size_t i = 0; i < kElements && !outputs.empty(); ++i) {
    const TripwireBuffer& buffer = outputs[below(outputs.size())];
    const Run run = buffer.runs.empty() ? Run{0, buffer.bytes} : buffer.runs[below(buffer.runs.size())];
    if (run.bytes < buffer.element || buffer.element > sizeof Element::before) continue;
    Element element{buffer.at + run.begin + below(run.bytes / buffer.element) * buffer.element, buffer.element, {}, {}};
    std::memcpy(element.before.data(), element.at, element.bytes);
    elements_.push_back(element);
  }
  lines_.reserve(kLines);
  for (std::size_t i = 0; i < kLines && !inputs.empty(); ++i) {
    const TripwireBuffer& buffer = inputs[below(inputs.size())];
    const std::size_t count = buffer.bytes / kLine;
    if (count < 2) continue;
    Line line{buffer.at + below(count) * kLine, kLine, {}};
    std::memcpy(line.truth.data(), line.at, line.bytes);
    lines_.push_back(line);
    std::memmove(line.at, buffer.at + below(count) * kLine, kLine);
  }
}

// Backwards: a line that was drawn twice was true the first time.
void Tripwires::restore() {
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) std::memcpy(line->at, line->truth.data(), line->bytes);
}

bool Tripwires::reveal() {
  restore();
  for (const Line& line : lines_) CacheFlusher::evict({line.at, line.bytes});
  lines_.clear();
  const bool untouched = std::all_of(elements_.begin(), elements_.end(), [](const Element& each) {
    return std::memcmp(each.at, each.before.data(), each.bytes) == 0;
  });
  for (const Element& each : elements_) CacheFlusher::evict({each.at, each.bytes});
  return untouched;
}

void Tripwires::ended() {
  for (Element& each : elements_) std::memcpy(each.at_end.data(), each.at, each.bytes);
}

bool Tripwires::unchanged() const {
  return std::all_of(elements_.begin(), elements_.end(),
                     [](const Element& each) { return std::memcmp(each.at, each.at_end.data(), each.bytes) == 0; });
}

}  // namespace hone::cpu
