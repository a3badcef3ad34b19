// What a CUDA kernel needs of its language, on the CPU: one block after the other, a thread of the CPU for each of its
// threads. It says whether a kernel computes what it should, and nothing about its speed.
#pragma once

#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define __global__
#define __shared__ static

inline thread_local dim3 threadIdx, blockIdx;
inline std::barrier<>* meeting = nullptr;

inline void __syncthreads() { meeting->arrive_and_wait(); }

template <typename Kernel, typename... Arguments>
void launch(Kernel kernel, dim3 grid, dim3 block, Arguments... arguments) {
    for (unsigned y = 0; y < grid.y; ++y)
        for (unsigned x = 0; x < grid.x; ++x) {
            std::barrier<> barrier(block.x * block.y);
            meeting = &barrier;
            std::vector<std::jthread> threads;
            for (unsigned row = 0; row < block.y; ++row)
                for (unsigned column = 0; column < block.x; ++column)
                    threads.emplace_back([=] {
                        blockIdx = dim3(x, y), threadIdx = dim3(column, row);
                        kernel(arguments...);
                    });
        }
}
