/// Environments that share blocks. A block computes the contacts that any of its environments has, so that a few with
/// many contacts make every block slow that has one of them. Where they share blocks of their own, the others are
/// cheap. Who is beside whom changes no bit.
#pragma once

namespace cohort::sim {

struct BlockOrder {
  /// Environments that are sorted together: what these have stays in a cache, wherever in it a block's lanes are.
  static constexpr int kMost = 1024;
  /// More contacts are not told apart.
  static constexpr int kContacts = 255;
  alignas(64) int envs[kMost];

  /// The environments [first, first + count) by their contacts of the last step, those with most first; count: a
  /// multiple of `width`, at most kMost. price: contacts that a block must be spared, in sixty-fourths, to pay for
  /// reading and writing environments that are not neighbours. Null: as they are they do as well.
  const int* sort(const int* contacts, int first, int count, int width, int price) {
    int begin[kContacts + 1] = {}, as_they_are = 0;
    for (int i = 0; i < count; i += width) {
      int most = 0;
      for (int k = i; k < i + width; ++k) {
        const int n = contacts_of(contacts[first + k]);
        ++begin[n];
        most = n > most ? n : most;
      }
      as_they_are += most;
    }
    // Counted, then put where they belong.
    int sorted = 0, taken = 0;
    for (int n = kContacts; n >= 0; --n) {
      const int some = begin[n];
      begin[n] = taken;
      // Blocks whose first environment has n contacts.
      sorted += n * ((taken + some + width - 1) / width - (taken + width - 1) / width);
      taken += some;
    }
    if (64 * (as_they_are - sorted) <= price * (count / width)) return nullptr;
    for (int k = 0; k < count; ++k) envs[begin[contacts_of(contacts[first + k])]++] = first + k;
    return envs;
  }

 private:
  /// The counts lie where a caller may write.
  static int contacts_of(int n) { return n < 0 ? 0 : n < kContacts ? n : kContacts; }
};

}  // namespace cohort::sim
