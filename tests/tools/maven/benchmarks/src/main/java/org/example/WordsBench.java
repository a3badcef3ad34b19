package org.example;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 1, time = 50, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 20, timeUnit = TimeUnit.MILLISECONDS)
@Fork(2)
public class WordsBench {
    @Param({"10", "100"})
    int n;

    String text;

    @Setup
    public void fill() {
        StringBuilder built = new StringBuilder();
        for (int i = 0; i < n; i++) {
            built.append("word").append(i % 10).append(' ');
        }
        text = built.toString();
    }

    @Benchmark
    public int count() {
        return Words.count(text);
    }

    @Benchmark
    public Map<String, Integer> index() {
        return Words.index(text);
    }
}
