/// Formulas of a task file: "exp(-norm2(command.twist[:2] - base.linear_velocity[:2]) / 0.25)". A typed expression without
/// loops and variables, read once into a Graph; shapes and names are checked when it is read.
///
/// A value is a number, a vector, or rows of vectors: of k links' positions, k x 3. Operators and functions go element
/// by element, a number goes with everything; x[0], x[:2], x[1:3] are of the last dimension, and norm, norm2, sum, mean,
/// smallest, largest, any, all, dot reduce the last dimension. Comparisons give 1 and 0; `and`, `or`, `not` take them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tasks/terms/graph.h"

namespace cohort::tasks::terms {

/// What stands in brackets behind a name: a value, or texts: "FL_foot", or ["FL_foot", "FR_foot"].
using Argument = std::variant<Expr, std::vector<std::string>>;

/// What the names in a formula mean.
class Names {
 public:
  virtual ~Names() = default;
  /// The value of a quantity; throws Error where it cannot be had so. False: there is none of this name.
  virtual bool find(const std::string& name, const std::vector<Argument>& arguments, Expr& value) = 0;
  /// A name that stands for texts within brackets: a parameter of the term. False: it is none.
  virtual bool text(const std::string&, std::vector<std::string>&) { return false; }
  /// Of the formula within its file: random numbers are keyed by it.
  virtual std::string place() const { return ""; }
  /// All names, for messages.
  virtual std::vector<std::string> all() const = 0;
  /// Control steps since the reset, and s of one.
  virtual Expr step() = 0;
  virtual double control_period() const = 0;
};

/// Reads a formula. Throws Error that names the column: "at column 5 of `...`: ...".
Expr read_formula(std::string_view text, Graph& graph, Names& names);

/// A function of formulas, for the documentation and `cohort tasks --terms`.
struct FunctionEntry {
  const char* name;
  const char* call;  ///< "clip(x, low, high)"
  const char* means;
};
std::span<const FunctionEntry> formula_functions();

// Functions with memory, which terms in C++ use as well; `step` as Names::step().

/// The value of the last control step; in the first evaluation of an episode the present one.
Expr previous(Graph& g, const Expr& step, const Expr& value);
/// s for which a condition has held without a break, each number for itself; 0 where it does not hold, and at the reset.
Expr held(Graph& g, const Expr& step, double period, const Expr& condition);
/// Sum over the control steps since the reset, the present one included; of the reset itself nothing.
Expr total(Graph& g, const Expr& step, const Expr& value);
/// The values of the last n control steps, the oldest first, as one row: at the beginning all are the first.
Expr history(Graph& g, const Expr& step, const Expr& value, int n);
/// The value of `steps` control steps ago (a number, at most `longest`); at the beginning the first.
Expr delayed(Graph& g, const Expr& step, const Expr& value, const Expr& steps, int longest);
/// The largest value since `restart` was true last (which counts afresh from the next step on), not below 0.
Expr peak(Graph& g, const Expr& step, const Expr& value, const Expr& restart);
/// What `value` was at the reset, for the whole episode.
Expr at_reset(Graph& g, const Expr& step, const Expr& value);

}  // namespace cohort::tasks::terms
