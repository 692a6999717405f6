#include "draw.h"

#include "core/format.h"

namespace cohort::sim::test {

namespace {

std::string text_of(double x) {
  return format("{:.4g}", x);
}

}  // namespace

const std::string& Draw::any_but(const std::vector<std::string>& list, const std::string& other) {
  for (;;) {
    const std::string& found = any(list);
    if (found != other) return found;
  }
}

Value fixed(const std::string& text) {
  return [text](Draw&) { return text; };
}

Value number(double low, double high) {
  return [=](Draw& draw) { return text_of(draw.uniform(low, high)); };
}

Value numbers(int count, double low, double high) {
  return tuple(std::vector<Interval>(static_cast<std::size_t>(count), Interval{low, high}));
}

Value tuple(std::vector<Interval> intervals) {
  return [intervals = std::move(intervals)](Draw& draw) {
    std::string text;
    for (const Interval& i : intervals) text += (text.empty() ? "" : " ") + text_of(draw.uniform(i.low, i.high));
    return text;
  };
}

Value one_of(std::vector<std::string> texts) {
  return [texts = std::move(texts)](Draw& draw) { return draw.any(texts); };
}

Value either(double probability, Value first, Value second) {
  return [=](Draw& draw) { return draw.chance(probability) ? first(draw) : second(draw); };
}

Value solref() {
  return either(0.7, tuple({{0.005, 0.05}, {0.5, 1.5}}), tuple({{-3000, -100}, {-80, -5}}));
}

Value solimp() {
  const Value falling = [](Draw& draw) { return tuple({{0.5, 1}, {0, 0.9}})(draw) + " 0.01"; };
  const Value rising = [](Draw& draw) {
    const std::string bounds = tuple({{0.3, 0.9}, {0.9, 0.99}})(draw),
                      width = one_of({"0", "0.001", "0.01", "0.1"})(draw), midpoint = number(0.1, 0.9)(draw),
                      power = one_of({"1", "2", "3", "6"})(draw);
    return bounds + " " + width + " " + midpoint + " " + power;
  };
  return either(0.8, rising, falling);
}

void draw_attributes(Draw& draw, const Attributes& table, Element& element) {
  for (const Attribute& a : table) {
    if (draw.chance(a.probability)) element.set(a.name, a.value(draw));
  }
}

}  // namespace cohort::sim::test
