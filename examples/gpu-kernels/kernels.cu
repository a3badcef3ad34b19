// Small CUDA kernels, each in a plain and a better form: transpose, sum and saxpy of f32.
//
//   nvcc -O3 -lineinfo -o kernels kernels.cu && ./kernels --check && ./kernels --bench
//
// Times are between two CUDA events on the device, around a batch of launches: the queue is empty when the first event
// is recorded, so a single launch's time would also hold the way from the host to the device.

#include <cuda_runtime.h>

#include <memory>

#include "draft.cuh"
#include "suite.hpp"

#ifndef BLOCK
#define BLOCK 256
#endif

constexpr int kTile = 32;      // side of a tile, and the width of a warp
constexpr int kRows = 8;       // rows of threads that walk over one tile
constexpr int kBlock = BLOCK;  // threads of a block of the one-dimensional kernels
static_assert(kBlock >= 32 && kBlock <= 1024 && (kBlock & (kBlock - 1)) == 0, "BLOCK is a power of 2 from 32 to 1024");

// Reads go along rows, writes down columns: each store of a warp touches 32 different sectors.
__global__ void transpose_naive(float* out, const float* in, int n) {
    const int x = blockIdx.x * kTile + threadIdx.x;
    for (int j = 0; j < kTile; j += kRows) {
        const int y = blockIdx.y * kTile + threadIdx.y + j;
        out[static_cast<size_t>(x) * n + y] = in[static_cast<size_t>(y) * n + x];
    }
}

// Both go along rows, since the tile is turned in shared memory; the extra column keeps its columns off one bank.
__global__ void transpose_tiled(float* out, const float* in, int n) {
    __shared__ float tile[kTile][kTile + 1];
    const int x = blockIdx.x * kTile + threadIdx.x;
    for (int j = 0; j < kTile; j += kRows) {
        const int y = blockIdx.y * kTile + threadIdx.y + j;
        tile[threadIdx.y + j][threadIdx.x] = in[static_cast<size_t>(y) * n + x];
    }
    __syncthreads();
    const int across = blockIdx.y * kTile + threadIdx.x;
    for (int j = 0; j < kTile; j += kRows) {
        const int down = blockIdx.x * kTile + threadIdx.y + j;
        out[static_cast<size_t>(down) * n + across] = tile[threadIdx.x][threadIdx.y + j];
    }
}

// Every thread adds two values in shared memory a round; the modulo leaves a warp's threads in different branches.
__global__ void sum_naive(float* out, const float* in, size_t count) {
    __shared__ float part[kBlock];
    float own = 0;
    for (size_t i = blockIdx.x * static_cast<size_t>(kBlock) + threadIdx.x; i < count;
         i += static_cast<size_t>(gridDim.x) * kBlock)
        own += in[i];
    part[threadIdx.x] = own;
    __syncthreads();
    for (int step = 1; step < kBlock; step *= 2) {
        if (threadIdx.x % (2 * step) == 0) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

// Warps add in registers and meet once; four values a load.
__global__ void sum_shuffle(float* out, const float4* in, size_t fours) {
    __shared__ float part[kBlock / 32];
    float own = 0;
    for (size_t i = blockIdx.x * static_cast<size_t>(kBlock) + threadIdx.x; i < fours;
         i += static_cast<size_t>(gridDim.x) * kBlock) {
        const float4 v = in[i];
        own += (v.x + v.y) + (v.z + v.w);
    }
    own = warp_sum(own);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x < 32) {
        own = warp_sum(threadIdx.x < kBlock / 32 ? part[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) out[blockIdx.x] = own;
    }
}

__global__ void saxpy_plain(float* out, float a, const float* x, const float* y, size_t count) {
    const size_t i = blockIdx.x * static_cast<size_t>(kBlock) + threadIdx.x;
    if (i < count) out[i] = a * x[i] + y[i];
}

// Four values a load and store, and as many blocks as the device holds at once.
__global__ void saxpy_wide(float4* out, float a, const float4* x, const float4* y, size_t fours) {
    for (size_t i = blockIdx.x * static_cast<size_t>(kBlock) + threadIdx.x; i < fours;
         i += static_cast<size_t>(gridDim.x) * kBlock) {
        const float4 p = x[i], q = y[i];
        out[i] = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
    }
}

void must(cudaError_t status, const char* what) {
    if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// Device memory that is freed with its last user.
using Buffer = std::shared_ptr<float>;

Buffer device_copy(const std::vector<float>& values) {
    float* raw = nullptr;
    must(cudaMalloc(&raw, values.size() * sizeof(float)), "cudaMalloc");
    Buffer owned(raw, [](float* pointer) { cudaFree(pointer); });
    must(cudaMemcpy(raw, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice), "copy to the device");
    return owned;
}

std::vector<float> host_copy(const Buffer& buffer, size_t count) {
    std::vector<float> values(count);
    must(cudaMemcpy(values.data(), buffer.get(), count * sizeof(float), cudaMemcpyDeviceToHost), "copy to the host");
    return values;
}

double event_milliseconds(const std::function<void()>& launch, int launches) {
    cudaEvent_t start{}, stop{};
    must(cudaEventCreate(&start), "cudaEventCreate");
    must(cudaEventCreate(&stop), "cudaEventCreate");
    must(cudaEventRecord(start), "cudaEventRecord");
    for (int i = 0; i < launches; ++i) launch();
    must(cudaGetLastError(), "launch");
    must(cudaEventRecord(stop), "cudaEventRecord");
    must(cudaEventSynchronize(stop), "kernel");
    float elapsed = 0;
    must(cudaEventElapsedTime(&elapsed, start, stop), "cudaEventElapsedTime");
    cudaEventDestroy(start), cudaEventDestroy(stop);
    return elapsed;
}

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

std::string about_device(const cudaDeviceProp& device) {
    int driver = 0, runtime = 0;
    must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return std::string("gpu=\"") + device.name + "\" cc=" + std::to_string(device.major) + "." +
           std::to_string(device.minor) + " driver=" + version(driver) + " runtime=" + version(runtime);
}

Backend on_gpu(const Flags& flags) {
    Backend backend;
    const size_t n = flags.n, count = n * n;
    const float a = 2.5f;
    int blocks = 1;
    Buffer x, y, out;
    std::vector<float> host_x, host_y;
    // The names are told without a GPU, too.
    if (!flags.list) {
        int devices = 0;
        must(cudaGetDeviceCount(&devices), "no CUDA device");
        cudaDeviceProp device{};
        must(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
        backend.about = about_device(device);
        blocks = device.multiProcessorCount * (device.maxThreadsPerMultiProcessor / kBlock);
        host_x = input(count, 1), host_y = input(count, 2);
        x = device_copy(host_x), y = device_copy(host_y), out = device_copy(std::vector<float>(count));
    }
    backend.milliseconds = event_milliseconds;

    const double moved = 4.0 * count;
    const dim3 grid(n / kTile, n / kTile), block(kTile, kRows);
    const int side = static_cast<int>(n);
    // Blocks of sum leave one value each, which the host adds.
    const int parts = static_cast<int>(std::min(count, static_cast<size_t>(blocks)));
    const auto add = [&](const char* name, double bytes, double flops, std::function<void()> launch,
                         std::function<double()> judged, double tolerance) {
        const auto difference = [=](bool spoil) {
            // All bits set is a NaN: what an earlier kernel left there must not pass for this one's answer.
            must(cudaMemset(out.get(), 0xff, count * sizeof(float)), "cudaMemset");
            event_milliseconds(launch, 1);
            if (spoil) must(cudaMemset(out.get(), 0x42, sizeof(float)), "cudaMemset");
            return judged();
        };
        backend.kernels.push_back({name, n, bytes, flops, launch, difference, tolerance});
    };
    const auto turned = [=] { return max_abs_diff(host_copy(out, count), reference_transpose(host_x, n)); };
    const auto summed = [=] {
        const double mean = reference_sum(host_copy(out, parts)) / count;
        return std::fabs(mean - reference_sum(host_x) / count);
    };
    const auto scaled = [=] { return max_abs_diff(host_copy(out, count), reference_saxpy(a, host_x, host_y)); };
    const auto four = [](const Buffer& buffer) { return reinterpret_cast<float4*>(buffer.get()); };

    add("transpose/naive", 2 * moved, 0, [=] { transpose_naive<<<grid, block>>>(out.get(), x.get(), side); }, turned, 0);
    add("transpose/tiled", 2 * moved, 0, [=] { transpose_tiled<<<grid, block>>>(out.get(), x.get(), side); }, turned, 0);
    add("transpose/draft", 2 * moved, 0, [=] { transpose_draft<<<draft_grid(side), draft_block()>>>(out.get(), x.get(), side); },
        turned, 0);
    // Judged by the mean: a sum in f32 is off by more the longer it is.
    add("sum/naive", moved, count, [=] { sum_naive<<<parts, kBlock>>>(out.get(), x.get(), count); }, summed, 1e-6);
    add("sum/shuffle", moved, count, [=] { sum_shuffle<<<parts, kBlock>>>(out.get(), four(x), count / 4); }, summed, 1e-6);
    const int enough = static_cast<int>((count + kBlock - 1) / kBlock);
    add("saxpy/plain", 3 * moved, 2.0 * count,
        [=] { saxpy_plain<<<enough, kBlock>>>(out.get(), a, x.get(), y.get(), count); }, scaled, 1e-6);
    add("saxpy/wide", 3 * moved, 2.0 * count,
        [=] { saxpy_wide<<<blocks, kBlock>>>(four(out), a, four(x), four(y), count / 4); }, scaled, 1e-6);
    return backend;
}

int main(int argc, char** argv) { return run_suite(argc, argv, on_gpu); }
