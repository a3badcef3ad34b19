// Kernels whose needs are known to differ: a template in two forms, and one that spills since it may not use registers.
template <typename T, int N>
__global__ void scale(T* data, T factor) {
    data[blockIdx.x * N + threadIdx.x] *= factor;
}
template __global__ void scale<float, 256>(float*, float);
template __global__ void scale<double, 128>(double*, double);

namespace dense {
__device__ __noinline__ float step(float value, int i) { return value * 1.5f + i; }

__global__ void __launch_bounds__(1024, 2) crowded(float* out, const float* in) {
    __shared__ float first[64];
    first[threadIdx.x % 64] = in[threadIdx.x];
    __syncthreads();
    float part[48];
    for (int i = 0; i < 48; ++i) part[i] = in[threadIdx.x * 48 + i] + first[i];
#pragma unroll 1
    for (int round = 0; round < 16; ++round)
#pragma unroll
        for (int i = 0; i < 48; ++i) part[i] = step(part[(i * 7 + 1) % 48], i) + part[(i * 5 + 3) % 48];
    for (int i = 0; i < 48; ++i) out[threadIdx.x * 48 + i] = part[i];
}
}  // namespace dense

#ifdef BROKEN
int broken() { return missing; }
#endif

int main() { return 0; }
