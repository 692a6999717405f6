#!/usr/bin/env python3
"""Writes unicode_tables.cpp: what the uncased WordPiece tokenizer needs to know of Unicode, from Python's unicodedata.

    make_unicode_tables.py > unicode_tables.cpp
"""
import unicodedata

LIMIT = 0x110000


def ranges(predicate):
    out, start = [], None
    for c in range(LIMIT + 1):
        inside = c < LIMIT and predicate(c)
        if inside and start is None:
            start = c
        if not inside and start is not None:
            out.append((start, c - 1))
            start = None
    return out


def category(c):
    return unicodedata.category(chr(c))


def folded(c):
    plain = "".join(d for d in unicodedata.normalize("NFD", chr(c)) if unicodedata.category(d) != "Mn")
    return "".join(d.lower() for d in plain)


def print_ranges(name, doc, values):
    print(f"/// {doc}")
    print(f"const std::vector<CodeRange>& {name}() {{")
    print("  static const std::vector<CodeRange> ranges{")
    line = "     "
    for low, high in values:
        item = f" {{0x{low:X}, 0x{high:X}}},"
        if len(line) + len(item) > 118:
            print(line)
            line = "     "
        line += item
    print(line)
    print("  };\n  return ranges;\n}\n")


def main():
    print("// Made by make_unicode_tables.py from Unicode " + unicodedata.unidata_version + "; not to be edited.")
    print("// clang-format off")
    print('#include "models/language/unicode_tables.h"\n\nnamespace cohort::models {\n')
    print_ranges("removed_characters", "Cc but tab, line feed and carriage return; Cf, Co, Cs.",
                 ranges(lambda c: category(c) in ("Cc", "Cf", "Co", "Cs") and chr(c) not in "\t\n\r"))
    print_ranges("white_space", "The property White_Space, without control characters that are removed.",
                 ranges(lambda c: category(c) in ("Zs", "Zl", "Zp") or chr(c) in "\t\n\r"))
    print_ranges("punctuation", "ASCII's punctuation and symbols; the categories P*.",
                 ranges(lambda c: 33 <= c <= 47 or 58 <= c <= 64 or 91 <= c <= 96 or 123 <= c <= 126
                        or category(c).startswith("P")))
    print_ranges("nonspacing_marks", "Mn.", ranges(lambda c: category(c) == "Mn"))
    folds = {}
    for c in range(LIMIT):
        if 0xAC00 <= c <= 0xD7A3 or category(c) in ("Cs", "Mn"):  # Hangul syllables follow from a formula
            continue
        f = folded(c)
        if f != chr(c):
            folds[c] = f
    print("/// Characters that lose their accents or their capital form: \"<from><to>\" in UTF-8, separated by spaces.")
    print("const char* folds() {\n  return")
    text, lines = "", []
    for c, f in sorted(folds.items()):
        item = chr(c) + f + " "
        if len((text + item).encode()) > 100:
            lines.append(text)
            text = ""
        text += item
    lines.append(text)
    for line in lines:
        print('      "' + line.replace("\\", "\\\\").replace('"', '\\"') + '"')
    print("      ;\n}\n\n}  // namespace cohort::models")


if __name__ == "__main__":
    main()
