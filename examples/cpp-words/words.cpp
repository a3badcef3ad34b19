#include "words.hpp"

#include <sstream>

std::size_t count(const std::string &text) {
    std::size_t words = 0;
    bool inside = false;
    for (char letter : text) {
        bool is_space = letter == ' ' || letter == '\n' || letter == '\t';
        if (!is_space && !inside) ++words;
        inside = !is_space;
    }
    return words;
}

std::map<std::string, int> table(const std::string &text) {
    std::map<std::string, int> found;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) ++found[word];
    return found;
}

std::string text_of(int words) {
    std::string text;
    for (int number = 0; number < words; ++number) text += "word" + std::to_string(number % 37) + ' ';
    return text;
}
