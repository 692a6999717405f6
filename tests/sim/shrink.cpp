#include "shrink.h"

#include <sstream>
#include <utility>

#include "core/format.h"

namespace cohort::sim::test {

namespace {

class Shrinker {
 public:
  Shrinker(Element root, const std::function<bool(const Element&)>& shows) : root_(std::move(root)), shows_(shows) {}

  Element run() {
    do {
      smaller_ = false;
      drop_children(root_);
      drop_attributes(root_);
      shorten_numbers(root_);
    } while (smaller_);
    return std::move(root_);
  }

 private:
  /// Puts `value` in place of `part` of the tree, for good if the tree still shows what it should.
  template <class T>
  bool replace(T& part, T value) {
    std::swap(part, value);
    if (shows_(root_)) return smaller_ = true;
    std::swap(part, value);
    return false;
  }

  void drop_children(Element& e) {
    for (std::size_t i = e.children.size(); i-- > 0;) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      std::vector<Element> without = e.children;
      without.erase(without.begin() + at);
      if (replace(e.children, without)) continue;
      const std::vector<Element>& inner = e.children[i].children;
      if (e.children[i].tag == "body" && !inner.empty()) {
        without.insert(without.begin() + at, inner.begin(), inner.end());
        if (replace(e.children, std::move(without))) continue;
      }
      drop_children(e.children[i]);
    }
  }

  void drop_attributes(Element& e) {
    for (std::size_t i = e.attributes.size(); i-- > 0;) {
      auto without = e.attributes;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      replace(e.attributes, std::move(without));
    }
    for (Element& child : e.children) drop_attributes(child);
  }

  /// One digit in place of four.
  void shorten_numbers(Element& e) {
    for (auto& [name, value] : e.attributes) {
      std::istringstream words(value);
      std::string word, shorter;
      while (words >> word) shorter += (shorter.empty() ? "" : " ") + shortened(word);
      if (shorter != value) replace(value, shorter);
    }
    for (Element& child : e.children) shorten_numbers(child);
  }
  static std::string shortened(const std::string& word) {
    if (word.find('.') == std::string::npos) return word;
    std::size_t used = 0;
    try {
      const double x = std::stod(word, &used);
      return used == word.size() ? format("{:.1g}", x) : word;
    } catch (const std::exception&) {
      return word;
    }
  }

  Element root_;
  const std::function<bool(const Element&)>& shows_;
  bool smaller_ = false;
};

}  // namespace

Element shrink(Element root, const std::function<bool(const Element&)>& shows) {
  return Shrinker(std::move(root), shows).run();
}

}  // namespace cohort::sim::test
