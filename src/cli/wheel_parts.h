/// The libraries that pip puts beside a program of Cohort's wheel, looked at before a program that needs them is started: the
/// dynamic linker would name a mangled symbol or one file, and no remedy.
#pragma once
#include <filesystem>
#include <string>

namespace cohort::cli {

/// The minor version of LibTorch that this build has, e.g. "2.11"; empty where it has none.
std::string torch_of_this_build();

/// Throws Error, with the command that helps, where `program` (its absolute path) lies in a wheel's folder
/// (SITE/cohort/bin, beside SITE/cohort/__main__.py) and SITE holds no PyTorch, one of another minor version than
/// `wanted`, or one for CUDA whose libraries libcudart and libcupti are neither in SITE/nvidia nor known to the linker.
/// LibTorch asks for these two on machines without a GPU, too. Elsewhere, and where `wanted` is empty, returns.
void check_wheel_parts(const std::filesystem::path& program, const std::string& wanted = torch_of_this_build());

}  // namespace cohort::cli
