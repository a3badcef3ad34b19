// Prints the largest difference of the draft's answer from plain code, on the CPU.
#include <limits>

#include "cuda_on_cpu.hpp"

using std::size_t;

#include "draft.cuh"
#include "suite.hpp"

int main() {
    const int n = 96;
    const std::vector<float> in = input(static_cast<size_t>(n) * n, 1);
    std::vector<float> out(in.size(), std::numeric_limits<float>::quiet_NaN());
    launch(transpose_draft, draft_grid(n), draft_block(), out.data(), in.data(), n);
    std::printf("%g\n", max_abs_diff(out, reference_transpose(in, n)));
}
