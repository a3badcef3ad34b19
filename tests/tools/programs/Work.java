import java.util.ArrayList;
import java.util.List;

/** Counts and allocates for a moment; exits with the status that the first argument gives. */
final class Work {
    static List<int[]> kept = new ArrayList<>();

    static long count(int to) {
        long sum = 0;
        for (int i = 0; i < to; i++) {
            sum += (sum ^ i) % 7;
        }
        return sum;
    }

    static void allocate(int times) {
        for (int i = 0; i < times; i++) {
            kept.add(new int[1000]);
            if (kept.size() > 100) {
                kept.clear();
            }
        }
    }

    public static void main(String[] args) {
        long sum = 0;
        for (int round = 0; round < 30; round++) {
            sum += count(1_000_000);
            allocate(2000);
        }
        System.out.println(sum);
        System.exit(args.length > 0 ? Integer.parseInt(args[0]) : 0);
    }
}
