/// Sizes of the embedding tables of Informer; part of its weight files.
#pragma once

namespace cohort::models {

inline constexpr int kPositions = 5000;  ///< rows of the position table
inline constexpr int kMinutes = 4;       ///< quarters of an hour
inline constexpr int kHours = 24;
inline constexpr int kWeekdays = 7;
inline constexpr int kDays = 32;    ///< days of a month count from 1
inline constexpr int kMonths = 13;  ///< months count from 1

}  // namespace cohort::models
