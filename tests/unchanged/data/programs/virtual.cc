#include <cstdio>
#include <memory>
#include <string>
struct Shape { virtual double area() const = 0; virtual ~Shape() = default; };
struct Circle : Shape { double r = 2; double area() const override { return 3.5 * r * r; } };
struct Square : Shape { double r = 2; double area() const override { return r * r; } };
__attribute__((noinline)) std::unique_ptr<Shape> make(int kind) {
    if (kind) return std::make_unique<Circle>();
    return std::make_unique<Square>();
}
template <typename T> __attribute__((noinline)) T doubled(T x) { return x + x; }
int main(int argc, char **) {
    auto shape = make(argc > 0);
    std::string text = "the text";
    std::printf("bench %f %zu %d\n", shape->area(), doubled(text).size(), doubled(argc));
}
