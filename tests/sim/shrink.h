/// Makes a model small that shows something.
#pragma once
#include <functional>

#include "xml_tree.h"

namespace cohort::sim::test {

/// Takes out elements (of a body also all but its children) and attributes and shortens numbers as long as `shows` says
/// of the result that it still shows what it should; `root` itself does. Ends when nothing more can go.
Element shrink(Element root, const std::function<bool(const Element&)>& shows);

}  // namespace cohort::sim::test
