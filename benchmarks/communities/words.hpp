#pragma once
#include <string>

int count(const std::string &text);

inline std::string words(int n) {
    std::string text;
    for (int number = 0; number < n; number++) text += "word ";
    return text;
}
