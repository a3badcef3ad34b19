#include <string>

const int WORK = 100;

// Return how many words a text has, times the passes over it.
int count(const std::string &text) {
    int words = 0;
    for (int pass = 0; pass < WORK; pass++) {
        bool inside = false;
        for (char each : text) {
            bool letter = each != ' ';
            if (letter && !inside) words++;
            inside = letter;
        }
    }
    return words;
}
