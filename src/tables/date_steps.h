/// How the dates of a table's rows follow one another. Windows over rows take them as evenly spaced.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace cohort::tables {

/// What is not even, in words that follow "the dates", one text each; empty where every step is as long as most are:
///   run backwards 2 times, first at row 21 (from … to …); …
///   are repeated 5 times, first at row 11 (…); …
///   begin anew 2 times, first at row 101 (…): the file seems to hold 3 series one below the other, …
///   are repeated 100 times in 200 rows, …: the file seems to hold several series, a row of each in turn, …
///   have 1 gap, at row 92 (from … to …), …
///   are uneven: 66 of 199 steps are not the usual 47 min, first at row 2 (from … to …); …
/// `dates`: seconds since 1970-01-01 UTC, finite. Rows count from 1. A step may be 1 % off; months, quarters and years
/// have the lengths of the calendar; and daily dates without a Saturday or Sunday have no gap at a weekend. Where more
/// than a tenth of the steps is too long, they are uneven, not gaps.
std::vector<std::string> uneven_dates(std::span<const double> dates);

}  // namespace cohort::tables
