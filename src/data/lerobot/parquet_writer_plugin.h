/// What parquet_plugin.cpp gives of parquet_writer_plugin.cpp; within libcohort_parquet.so.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/lerobot/parquet_writer.h"

namespace cohort::data {

std::unique_ptr<ParquetWriter> create_with_arrow(const std::string& path, const std::vector<ParquetNewColumn>& columns,
                                                 const ParquetNotes& notes);

}  // namespace cohort::data
