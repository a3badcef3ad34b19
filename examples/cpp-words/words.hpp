#pragma once

#include <cstddef>
#include <map>
#include <string>

/// Return the number of words in a text.
std::size_t count(const std::string &text);

/// Return how often each word occurs in a text.
std::map<std::string, int> table(const std::string &text);

/// Return a text with a number of words.
std::string text_of(int words);
