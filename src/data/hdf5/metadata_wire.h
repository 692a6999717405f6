/// What Hdf5MetadataReader answers, as bytes between two processes: put() writes what take<T>() reads.
#pragma once
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/byte_stream.h"
#include "data/hdf5/array.h"

namespace cohort::data {

template <class T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Hdf5Chunk>;

// All of these are declared before any is defined: lists hold pairs, pairs hold lists.
template <class T>
requires kIsPlain<T>
void put(ByteWriter& out, const T& value);
inline void put(ByteWriter& out, const std::string& text);
inline void put(ByteWriter& out, const Hdf5Array& array);
template <class A, class B>
void put(ByteWriter& out, const std::pair<A, B>& pair);
template <class T>
void put(ByteWriter& out, const std::vector<T>& list);

template <class T>
requires kIsPlain<T>
void take(ByteReader& in, T& value);
inline void take(ByteReader& in, std::string& text);
inline void take(ByteReader& in, Hdf5Array& array);
template <class A, class B>
void take(ByteReader& in, std::pair<A, B>& pair);
template <class T>
void take(ByteReader& in, std::vector<T>& list);

template <class T>
requires kIsPlain<T>
void put(ByteWriter& out, const T& value) {
  out.bytes(&value, sizeof value);
}
template <class T>
requires kIsPlain<T>
void take(ByteReader& in, T& value) {
  in.bytes(&value, sizeof value);
}

inline void put(ByteWriter& out, const std::string& text) {
  out.text(text);
}
inline void take(ByteReader& in, std::string& text) {
  text = in.text();
}

template <class A, class B>
void put(ByteWriter& out, const std::pair<A, B>& pair) {
  put(out, pair.first);
  put(out, pair.second);
}
template <class A, class B>
void take(ByteReader& in, std::pair<A, B>& pair) {
  take(in, pair.first);
  take(in, pair.second);
}

template <class T>
void put(ByteWriter& out, const std::vector<T>& list) {
  out.number(list.size());
  for (const T& value : list) put(out, value);
}
template <class T>
void take(ByteReader& in, std::vector<T>& list) {
  list.resize(in.count(1));
  for (T& value : list) take(in, value);
}

/// The parts of an array, in one order for both ways.
template <class Array, class Body>
void for_each_part(Array& array, const Body& body) {
  body(array.path), body(array.element.kind), body(array.element.bytes), body(array.element.big_endian);
  body(array.shape), body(array.layout), body(array.offset), body(array.inline_bytes), body(array.chunk_shape);
  body(array.chunks), body(array.filters), body(array.fill);
}
inline void put(ByteWriter& out, const Hdf5Array& array) {
  for_each_part(array, [&](const auto& part) { put(out, part); });
}
inline void take(ByteReader& in, Hdf5Array& array) {
  for_each_part(array, [&](auto& part) { take(in, part); });
}

template <class T>
T take(ByteReader&& in) {
  T value{};
  take(in, value);
  return value;
}

}  // namespace cohort::data
