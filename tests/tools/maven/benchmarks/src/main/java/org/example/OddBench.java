package org.example;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Benchmarks in each mode, one whose name begins with that of another, one whose
 * parameter JMH cannot choose, and one that fails.
 */
@Warmup(iterations = 1, time = 20, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 20, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class OddBench {
    static final String TEXT = "a few words of a text ".repeat(100);

    @State(Scope.Benchmark)
    public static class Chosen {
        @Param({"x/y", "a.b*", "it's (one)"})
        String name;

        @Param({"1", "2"})
        int size;
    }

    @Benchmark
    @BenchmarkMode(Mode.Throughput)
    @OutputTimeUnit(TimeUnit.MILLISECONDS)
    public int rate() {
        return Words.count(TEXT);
    }

    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public int sample() {
        return Words.count(TEXT);
    }

    @Benchmark
    @BenchmarkMode(Mode.SingleShotTime)
    public int single() {
        return Words.count(TEXT);
    }

    @Benchmark
    @BenchmarkMode({Mode.Throughput, Mode.AverageTime})
    public int rateAndTime() {
        return Words.count(TEXT);
    }

    @Benchmark
    @BenchmarkMode(Mode.AverageTime)
    public int chosen(Chosen chosen) {
        return Words.count(chosen.name) + chosen.size;
    }

    @State(Scope.Benchmark)
    public static class Listed {
        @Param({"a, b", "c"})
        String letters;
    }

    @Benchmark
    public int listed(Listed listed) {
        return Words.count(listed.letters);
    }

    @Benchmark
    public int fails() {
        throw new IllegalStateException("no data");
    }
}
