// What the programs of this folder share: their flags, the judgement of a kernel's answer, and the lines they print.
//
// A program hands over its kernels and a way to time one launch; nothing in here knows a GPU. The printed lines are
// what perfflow's tool cuda-bench reads:
//
//   gpu="NVIDIA H200" cc=9.0 driver=13.0 runtime=13.0        the device, once
//   kernel=transpose/tiled ms=0.0123 bytes=134217728 warmup=1    the first launch, apart from the others
//   kernel=transpose/tiled ms=0.0101 bytes=134217728 flops=0 n=4096 precision=f32 batch=10    mean of 10 launches
//   end kernels=6 times=300                                  the last line of a run that went well
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

// One kernel on one size of data. `bytes` and `flops` are what one launch must move and compute at least.
struct Kernel {
    std::string name;
    std::size_t n;
    double bytes;
    double flops;
    std::function<void()> launch;
    // Largest absolute difference from the plain code after one launch into an output of NaN; `spoil` changes one value
    // of the answer before it is judged.
    std::function<double(bool spoil)> difference;
    double tolerance;
};

struct Backend {
    std::string about;  // the line that names the device, '' for none
    // Time of so many launches in a row.
    std::function<double(const std::function<void()>& launch, int launches)> milliseconds;
    std::vector<Kernel> kernels;
};

// A flag that will not do.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Flags {
    enum class Mode { none, bench, once, check } mode = Mode::none;
    bool list = false;
    std::string kernel;  // a kernel or the first part of several names; '' for all
    std::size_t n = 4096;
    int repeats = 50;
    int batch = 10;
    std::string plant;  // a kernel whose answer is spoiled before it is judged
};

inline const char* usage() {
    return "usage: PROGRAM --bench | --check | --once KERNEL  [--list] [--kernel KERNEL] [--n SIDE] [--repeats R] [--batch B]\n"
           "  --bench  time each kernel: one warm-up, then R times B launches   --check  compare with plain CPU code\n"
           "  --once   launch one kernel once, for a profiler           --list   only print the names\n"
           "  --kernel only this one, or all whose names begin with KERNEL/\n"
           "  --n      side of the square matrix (vectors have SIDE*SIDE elements), a multiple of 32\n"
           "  --plant KERNEL  with --check: spoil that kernel's answer, to see that it is rejected\n";
}

// Whether a kernel is the one that is named, or one of those named KERNEL/...
inline bool is_one_of(const std::string& name, const std::string& wanted) {
    return name == wanted || name.rfind(wanted + "/", 0) == 0;
}

// Whole number from 1 to `most`. Throws UsageError naming the flag.
inline std::size_t count_of(const std::string& flag, const std::string& text, std::size_t most) {
    char* rest = nullptr;
    const long long value = std::strtoll(text.c_str(), &rest, 10);
    if (text.empty() || *rest || value < 1 || static_cast<unsigned long long>(value) > most)
        throw UsageError(flag + " takes a whole number from 1 to " + std::to_string(most) + ", not " + text);
    return static_cast<std::size_t>(value);
}

inline Flags read_flags(int argc, char** argv) {
    Flags flags;
    const auto choose = [&](Flags::Mode mode) {
        if (flags.mode != Flags::Mode::none) throw UsageError("choose one of --bench, --check, --once");
        flags.mode = mode;
    };
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const std::size_t equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        const auto value = [&]() -> std::string {
            if (equals != std::string::npos) return word.substr(equals + 1);
            if (++i >= argc) throw UsageError(flag + " needs a value");
            return argv[i];
        };
        if (flag == "--list") flags.list = true;
        else if (flag == "--bench") choose(Flags::Mode::bench);
        else if (flag == "--check") choose(Flags::Mode::check);
        else if (flag == "--once") choose(Flags::Mode::once), flags.kernel = value();
        else if (flag == "--kernel") flags.kernel = value();
        else if (flag == "--n") flags.n = count_of(flag, value(), 32768);
        else if (flag == "--repeats") flags.repeats = static_cast<int>(count_of(flag, value(), 1000000));
        else if (flag == "--batch") flags.batch = static_cast<int>(count_of(flag, value(), 1000000));
        else if (flag == "--plant") flags.plant = value();
        else throw UsageError("unknown flag " + flag);
    }
    if (flags.n % 32) throw UsageError("--n must be a multiple of 32, the side of a tile");
    if (flags.mode == Flags::Mode::none && !flags.list) throw UsageError("choose one of --bench, --check, --once");
    return flags;
}

// The same input on every machine: values from 0 to 1 that differ from their neighbours (a 32-bit xorshift).
inline std::vector<float> input(std::size_t count, unsigned seed) {
    std::vector<float> values(count);
    unsigned state = seed;
    for (float& value : values) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        value = static_cast<float>(state >> 8) / static_cast<float>(1u << 24);
    }
    return values;
}

// Plain code, which the kernels are held against.
inline std::vector<float> reference_transpose(const std::vector<float>& in, std::size_t n) {
    std::vector<float> out(in.size());
    for (std::size_t y = 0; y < n; ++y)
        for (std::size_t x = 0; x < n; ++x) out[x * n + y] = in[y * n + x];
    return out;
}

inline double reference_sum(const std::vector<float>& in) {
    double sum = 0;
    for (const float value : in) sum += value;
    return sum;
}

inline std::vector<float> reference_saxpy(float a, const std::vector<float>& x, const std::vector<float>& y) {
    std::vector<float> out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = a * x[i] + y[i];
    return out;
}

// Largest absolute difference; infinite where one of them is no number or the lengths differ.
inline double max_abs_diff(const std::vector<float>& found, const std::vector<float>& expected) {
    if (found.size() != expected.size()) return HUGE_VAL;
    double most = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double apart = std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
        if (!(apart <= HUGE_VAL)) return HUGE_VAL;
        if (apart > most) most = apart;
    }
    return most;
}

// Time `launches` in a row and print the mean of one.
inline void time_launches(const Backend& backend, const Kernel& kernel, int launches, bool warmup) {
    const double ms = backend.milliseconds(kernel.launch, launches) / launches;
    std::printf("kernel=%s ms=%.9g bytes=%.0f flops=%.0f n=%zu precision=f32 batch=%d%s\n", kernel.name.c_str(), ms,
                kernel.bytes, kernel.flops, kernel.n, launches, warmup ? " warmup=1" : "");
}

// Judge every chosen kernel; returns how many were wrong.
inline int check(const std::vector<Kernel>& chosen, const std::string& plant) {
    int wrong = 0;
    for (const Kernel& kernel : chosen) {
        const double apart = kernel.difference(kernel.name == plant);
        const bool good = apart <= kernel.tolerance;
        wrong += !good;
        std::printf("kernel=%s max_abs_diff=%.9g tolerance=%.9g %s\n", kernel.name.c_str(), apart, kernel.tolerance,
                    good ? "ok" : "WRONG");
    }
    return wrong;
}

// Do what the flags say; returns the exit status: 0, 1 for a wrong answer, 2 for a flag or device that will not do.
inline int run_suite(int argc, char** argv, const std::function<Backend(const Flags&)>& make) {
    try {
        const Flags flags = read_flags(argc, argv);
        Backend backend = make(flags);
        std::vector<Kernel> chosen;
        for (const Kernel& kernel : backend.kernels)
            if (flags.kernel.empty() || is_one_of(kernel.name, flags.kernel)) chosen.push_back(kernel);
        const auto unknown = [](const std::string& name) {
            return UsageError("there is no kernel " + name + "; --list names them");
        };
        const bool single = flags.mode == Flags::Mode::once;
        if (chosen.empty() || (single && chosen.front().name != flags.kernel)) throw unknown(flags.kernel);
        const auto planted = [&](const Kernel& kernel) { return kernel.name == flags.plant; };
        if (!flags.plant.empty() && std::none_of(backend.kernels.begin(), backend.kernels.end(), planted))
            throw unknown(flags.plant);
        int wrong = 0;
        if (flags.list) {
            for (const Kernel& kernel : chosen) std::printf("%s\n", kernel.name.c_str());
            return 0;
        }
        if (!backend.about.empty()) std::printf("%s\n", backend.about.c_str());
        if (flags.mode == Flags::Mode::check) {
            wrong = check(chosen, flags.plant);
        } else if (flags.mode == Flags::Mode::once) {
            backend.milliseconds(chosen.front().launch, 1);
        } else {
            for (const Kernel& kernel : chosen) {
                time_launches(backend, kernel, 1, true);
                for (int i = 0; i < flags.repeats; ++i) time_launches(backend, kernel, flags.batch, false);
            }
        }
        std::printf("end kernels=%zu", chosen.size());
        if (flags.mode == Flags::Mode::bench) std::printf(" times=%zu", chosen.size() * flags.repeats);
        std::printf("\n");
        return wrong ? 1 : 0;
    } catch (const UsageError& error) {
        std::fprintf(stderr, "%serror: %s\n", usage(), error.what());
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 2;
    }
}
