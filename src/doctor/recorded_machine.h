/// Small facts below a root that several checks read.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::doctor {

/// A file's text without blanks at its end; "" where there is none.
std::string fact(const std::filesystem::path& path);

/// Names in a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// PCI addresses of NVIDIA's display and 3D controllers (vendor 0x10de, class 0x03....), from sysfs.
std::vector<std::string> nvidia_on_pci(const std::filesystem::path& root);

/// Version of the kernel's NVIDIA module, "580.65.06"; "" where it is not loaded.
std::string kernel_module_version(const std::filesystem::path& root);

/// In a container: what shows it ("/.dockerenv"); "" outside.
std::string container_sign(const std::filesystem::path& root);

/// "580.65.06" >= "525.60.13", part by part.
bool at_least(const std::string& version, const std::string& least);

}  // namespace cohort::doctor
