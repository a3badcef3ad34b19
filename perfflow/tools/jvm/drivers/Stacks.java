import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/**
 * Prints the stacks of all recordings of JDK Flight Recorder in a folder as JSON: {@code java Stacks.java FOLDER}.
 *
 * <p>{@code frames} has the name, file and line of each frame, {@code time} and {@code bytes} a list of [value, frame,
 * frame, ...], root first. Classes with a source below the working directory are named without their package.
 */
final class Stacks {
    private static final Set<String> NOT_SOURCES = Set.of("target", "build", "out", "node_modules");
    private static final List<String> LANGUAGES = List.of(".java", ".kt", ".scala", ".groovy");
    private static final String LAMBDA = "\\$\\$Lambda";
    private static final int DEEPEST = 20;

    private final Map<String, List<Path>> sources = new HashMap<>();
    private final Map<String, String> files = new HashMap<>();
    private final Map<String, Integer> frames = new LinkedHashMap<>();
    private final Map<String, Map<List<Integer>, Long>> stacks = new LinkedHashMap<>();

    public static void main(String[] args) throws IOException {
        List<Path> recordings;
        try (Stream<Path> found = Files.walk(Path.of(args[0]))) {
            recordings = found.filter(path -> path.toString().endsWith(".jfr")).collect(Collectors.toList());
        }
        if (recordings.isEmpty()) {
            System.err.println("the program left no recording");
            System.exit(1);
        }
        Stacks stacks = new Stacks();
        stacks.findSources();
        for (Path recording : recordings) {
            stacks.read(recording);
        }
        stacks.print(new PrintStream(System.out, false, "UTF-8"));
    }

    private Stacks() {
        stacks.put("time", new LinkedHashMap<>());
        stacks.put("bytes", new LinkedHashMap<>());
    }

    private void findSources() throws IOException {
        Files.walkFileTree(Path.of("").toAbsolutePath(), Set.of(), DEEPEST, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
                String name = String.valueOf(folder.getFileName());
                boolean skipped = NOT_SOURCES.contains(name) || name.startsWith(".");
                // The tree itself may be in such a folder.
                boolean isTop = folder.equals(Path.of("").toAbsolutePath());
                return skipped && !isTop ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                String name = file.getFileName().toString();
                if (LANGUAGES.stream().anyMatch(name::endsWith)) {
                    sources.computeIfAbsent(name, key -> new ArrayList<>()).add(file);
                }
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException error) {
                return FileVisitResult.CONTINUE;
            }
        });
        // Of several files with one class, both sides of a comparison show the same.
        sources.values().forEach(Collections::sort);
    }

    private void read(Path recording) throws IOException {
        try (RecordingFile file = new RecordingFile(recording)) {
            while (file.hasMoreEvents()) {
                RecordedEvent event = file.readEvent();
                switch (event.getEventType().getName()) {
                    case "jdk.ExecutionSample":
                        add("time", event, 1);
                        break;
                    case "jdk.ObjectAllocationSample":
                        add("bytes", event, event.getLong("weight"));
                        break;
                    // Those of async-profiler.
                    case "jdk.ObjectAllocationInNewTLAB":
                        add("bytes", event, event.getLong("tlabSize"));
                        break;
                    case "jdk.ObjectAllocationOutsideTLAB":
                        add("bytes", event, event.getLong("allocationSize"));
                        break;
                    default:
                }
            }
        }
    }

    private void add(String kind, RecordedEvent event, long value) {
        if (event.getStackTrace() == null || event.getStackTrace().getFrames().isEmpty()) {
            return;
        }
        List<Integer> stack = new ArrayList<>();
        for (RecordedFrame frame : event.getStackTrace().getFrames()) {
            stack.add(frames.computeIfAbsent(shown(frame), key -> frames.size()));
        }
        Collections.reverse(stack);
        stacks.get(kind).merge(stack, value, Long::sum);
    }

    /** Returns a frame in JSON. */
    private String shown(RecordedFrame frame) {
        String type = frame.getMethod().getType() == null ? "" : frame.getMethod().getType().getName();
        // The class that calls a lambda has its address in its name.
        type = type.replace('/', '.').replaceFirst(LAMBDA + "[$./].*", LAMBDA);
        String file = files.computeIfAbsent(type, this::sourceOf);
        String owner = file.isEmpty() ? type : type.substring(type.lastIndexOf('.') + 1);
        String name = (owner.isEmpty() ? "" : owner.replaceAll("(?<=\\w)\\$(?=\\w)", ".") + ".") + frame.getMethod().getName();
        String place = ", \"file\": " + quoted(file) + ", \"line\": " + Math.max(0, frame.getLineNumber());
        return "{\"name\": " + quoted(name) + place + "}";
    }

    /** Returns the source file of a class, or "" if it is not one of the project's. */
    private String sourceOf(String type) {
        if (type.contains("$$Lambda")) {
            return "";
        }
        int nested = type.indexOf('$');
        String outermost = (nested < 0 ? type : type.substring(0, nested)).replace('.', '/');
        for (String language : LANGUAGES) {
            // Kotlin puts the functions of Words.kt into a class WordsKt.
            String plain = language.equals(".kt") ? outermost.replaceFirst("Kt$", "") : outermost;
            Path wanted = Path.of(plain + language);
            for (Path file : sources.getOrDefault(String.valueOf(wanted.getFileName()), List.of())) {
                if (file.endsWith(wanted)) {
                    return file.toString();
                }
            }
        }
        return "";
    }

    private void print(PrintStream out) {
        out.println("{\"frames\": [" + String.join(",\n", frames.keySet()) + "]");
        stacks.forEach((kind, found) -> {
            List<String> rows = new ArrayList<>();
            found.forEach((stack, value) -> rows.add("[" + value + ", " + stack.toString().substring(1)));
            out.println(", \"" + kind + "\": [" + String.join(",\n", rows) + "]");
        });
        out.println("}");
        out.flush();
    }

    private static String quoted(String text) {
        StringBuilder found = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ') {
                found.append(String.format("\\u%04x", (int) c));
            } else {
                found.append(c);
            }
        }
        return found.append('"').toString();
    }
}
