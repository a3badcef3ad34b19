// The flags, the judgement and the printed lines of kernels.cu for a machine without a GPU: the same kernels on one core.
//
//   c++ -O3 -o kernels-cpu kernels_cpu.cpp && ./kernels-cpu --check && ./kernels-cpu --bench --n 1024
//
// Its times are a CPU's and say nothing about a GPU.

#include <chrono>
#include <limits>
#include <memory>

#include "suite.hpp"

constexpr std::size_t kTile = 32;

// Reads go along rows, writes down columns.
void transpose_naive(float* out, const float* in, std::size_t n) {
    for (std::size_t y = 0; y < n; ++y)
        for (std::size_t x = 0; x < n; ++x) out[x * n + y] = in[y * n + x];
}

// Both go along rows, since the tile is turned in a buffer that stays in the first cache.
void transpose_tiled(float* out, const float* in, std::size_t n) {
    float tile[kTile][kTile + 1];
    for (std::size_t top = 0; top < n; top += kTile)
        for (std::size_t left = 0; left < n; left += kTile) {
            for (std::size_t y = 0; y < kTile; ++y)
                for (std::size_t x = 0; x < kTile; ++x) tile[x][y] = in[(top + y) * n + left + x];
            for (std::size_t x = 0; x < kTile; ++x)
                for (std::size_t y = 0; y < kTile; ++y) out[(left + x) * n + top + y] = tile[x][y];
        }
}

// One chain of additions, each of which waits for the last one.
void sum_chain(float* out, const float* in, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += in[i];
    out[0] = static_cast<float>(sum);
}

// Eight chains; `count` is a multiple of 1024.
void sum_lanes(float* out, const float* in, std::size_t count) {
    double part[8] = {};
    for (std::size_t i = 0; i < count; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) part[lane] += in[i + lane];
    out[0] = static_cast<float>(((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])));
}

void saxpy(float* out, float a, const float* x, const float* y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = a * x[i] + y[i];
}

double clock_milliseconds(const std::function<void()>& launch, int launches) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) launch();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Backend on_cpu(const Flags& flags) {
    const std::size_t n = flags.n, count = n * n;
    const float a = 2.5f;
    const bool used = !flags.list;
    const auto x = std::make_shared<std::vector<float>>(used ? input(count, 1) : std::vector<float>());
    const auto y = std::make_shared<std::vector<float>>(used ? input(count, 2) : std::vector<float>());
    const auto out = std::make_shared<std::vector<float>>(used ? count : 0);
    Backend backend{"", clock_milliseconds, {}};
    const auto add = [&](const char* name, double bytes, double flops, std::function<void()> launch,
                         std::function<double()> judged, double tolerance) {
        const auto difference = [=](bool spoil) {
            out->assign(count, std::numeric_limits<float>::quiet_NaN());
            launch();
            if (spoil) (*out)[0] = 48.0f;
            return judged();
        };
        backend.kernels.push_back({name, n, bytes, flops, launch, difference, tolerance});
    };
    const auto turned = [=] { return max_abs_diff(*out, reference_transpose(*x, n)); };
    const auto summed = [=] { return std::fabs((*out)[0] - reference_sum(*x)) / static_cast<double>(count); };
    const auto scaled = [=] { return max_abs_diff(*out, reference_saxpy(a, *x, *y)); };
    const double moved = 4.0 * count;
    add("transpose/naive", 2 * moved, 0, [=] { transpose_naive(out->data(), x->data(), n); }, turned, 0);
    add("transpose/tiled", 2 * moved, 0, [=] { transpose_tiled(out->data(), x->data(), n); }, turned, 0);
    add("sum/chain", moved, count, [=] { sum_chain(out->data(), x->data(), count); }, summed, 1e-6);
    add("sum/lanes", moved, count, [=] { sum_lanes(out->data(), x->data(), count); }, summed, 1e-6);
    add("saxpy/plain", 3 * moved, 2.0 * count, [=] { saxpy(out->data(), a, x->data(), y->data(), count); }, scaled, 1e-6);
    return backend;
}

int main(int argc, char** argv) { return run_suite(argc, argv, on_cpu); }
