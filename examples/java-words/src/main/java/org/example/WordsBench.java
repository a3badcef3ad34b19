package org.example;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class WordsBench {
    @State(Scope.Benchmark)
    public static class Text {
        @Param({"10", "1000"})
        int words;

        String text;

        @Setup
        public void write() {
            text = written(words);
        }
    }

    @State(Scope.Benchmark)
    public static class Shown {
        final Map<String, Integer> index = Words.index(written(200));
    }

    @Benchmark
    public int count(Text text) {
        return Words.count(text.text);
    }

    @Benchmark
    public Map<String, Integer> index(Text text) {
        return Words.index(text.text);
    }

    @Benchmark
    public String show(Shown shown) {
        return Words.show(shown.index);
    }

    private static String written(int words) {
        StringBuilder built = new StringBuilder();
        for (int i = 0; i < words; i++) {
            built.append("word").append(i % 100).append(' ');
        }
        return built.toString();
    }
}
