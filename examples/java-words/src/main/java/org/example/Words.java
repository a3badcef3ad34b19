package org.example;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** Words of a text, which spaces separate. */
public final class Words {
    public static int count(String text) {
        int words = 0;
        boolean inside = false;
        for (int i = 0; i < text.length(); i++) {
            boolean letter = text.charAt(i) != ' ';
            if (letter && !inside) {
                words++;
            }
            inside = letter;
        }
        return words;
    }

    public static Map<String, Integer> index(String text) {
        Map<String, Integer> found = new HashMap<>();
        for (String word : text.split(" ")) {
            found.merge(word, 1, Integer::sum);
        }
        return found;
    }

    /** Returns the words with their numbers, one a line, sorted. */
    public static String show(Map<String, Integer> index) {
        StringBuilder built = new StringBuilder();
        for (Map.Entry<String, Integer> entry : new TreeMap<>(index).entrySet()) {
            built.append(entry.getKey()).append(": ").append(entry.getValue()).append('\n');
        }
        return built.toString();
    }

    /** Shows the words of a text that has as many as the first argument says. */
    public static void main(String[] args) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            text.append("word").append(i % 1000).append(' ');
        }
        System.out.print(show(index(text.toString())));
    }

    private Words() {}
}
