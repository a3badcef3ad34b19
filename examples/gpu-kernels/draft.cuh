// A transpose that is still to be made faster: the candidates of workflows/gpu-kernel.yaml begin here.
#pragma once

constexpr int kSide = 32;  // side of what a block turns
constexpr int kLines = 8;  // rows of threads that walk over it

inline dim3 draft_grid(int n) { return dim3(n / kSide, n / kSide); }
inline dim3 draft_block() { return dim3(kSide, kLines); }

// `n` is a multiple of kSide.
__global__ void transpose_draft(float* out, const float* in, int n) {
    const int x = blockIdx.x * kSide + threadIdx.x;
    for (int j = 0; j < kSide; j += kLines) {
        const int y = blockIdx.y * kSide + threadIdx.y + j;
        out[static_cast<size_t>(x) * n + y] = in[static_cast<size_t>(y) * n + x];
    }
}
