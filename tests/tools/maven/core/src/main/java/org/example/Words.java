package org.example;

import java.util.HashMap;
import java.util.Map;

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

    private Words() {}
}
