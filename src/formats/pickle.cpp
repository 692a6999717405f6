#include "formats/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <span>

#include "core/error.h"

namespace cohort {
namespace {

using Kind = PickleValue::Kind;

/// Everything that a state dict may ask for.
constexpr std::array<std::string_view, 19> kAllowed{"collections OrderedDict",
                                                    "torch Size",
                                                    "torch._utils _rebuild_tensor_v2",
                                                    "torch._utils _rebuild_parameter",
                                                    "torch FloatStorage",
                                                    "torch DoubleStorage",
                                                    "torch HalfStorage",
                                                    "torch BFloat16Storage",
                                                    "torch LongStorage",
                                                    "torch IntStorage",
                                                    "torch ShortStorage",
                                                    "torch CharStorage",
                                                    "torch ByteStorage",
                                                    "torch BoolStorage",
                                                    "torch.nn.parameter Parameter",
                                                    "builtins dict",
                                                    "builtins list",
                                                    "builtins set",
                                                    "builtins tuple"};
/// And an array. NumPy 2 calls its inner module otherwise.
constexpr std::array<std::string_view, 5> kAllowedOfNumpy{"numpy.core.multiarray _reconstruct",
                                                          "numpy._core.multiarray _reconstruct", "numpy ndarray",
                                                          "numpy dtype", "_codecs encode"};

std::span<const std::string_view> allowed(PickleOf of) {
  return of == PickleOf::kTorchState ? std::span<const std::string_view>(kAllowed) : kAllowedOfNumpy;
}

/// The bytes that protocol 2 writes as text, a code point for each (_codecs.encode(text, "latin1")).
bool latin1_bytes(const std::string& text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      out += text[i];
      continue;
    }
    if ((c != 0xc2 && c != 0xc3) || ++i == text.size() || (text[i] & 0xc0) != 0x80) return false;
    out += static_cast<char>((c & 3) << 6 | (text[i] & 0x3f));
  }
  return true;
}

}  // namespace

/// The stack machine.
class PickleReader {
 public:
  PickleReader(Pickle& pickle, std::string_view bytes, const std::string& source, PickleOf of)
      : values_(pickle.values_), bytes_(bytes), source_(source), of_(of) {}

  const PickleValue* run() {
    for (;;) {
      const unsigned char code = byte();
      if (code == '.') return pop();
      step(code);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(format("{}: byte {}: {}", source_, at_, what));
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("ends too early");
    const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return part;
  }
  unsigned char byte() { return static_cast<unsigned char>(take(1)[0]); }
  std::uint64_t little(std::uint64_t count) {
    const std::string_view part = take(count);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < part.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    return value;
  }
  std::string line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("ends too early");
    std::string text(take(end - at_));
    take(1);
    return text;
  }

  PickleValue& fresh(Kind kind) {
    values_.emplace_back();
    values_.back().kind = kind;
    return values_.back();
  }
  PickleValue& push(Kind kind) {
    PickleValue& value = fresh(kind);
    stack_.push_back(&value);
    return value;
  }
  void push_number(Kind kind, std::int64_t number) { push(kind).number = number; }
  PickleValue* pop() {
    if (stack_.empty() || stack_.back() == nullptr) refuse("takes a value from an empty stack");
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue* top() {
    if (stack_.empty() || stack_.back() == nullptr) refuse("takes a value from an empty stack");
    return stack_.back();
  }
  /// What stands above the last mark, which goes.
  std::vector<PickleValue*> above_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
    if (mark == stack_.rend()) refuse("looks for a mark that is not there");
    std::vector<PickleValue*> values(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return values;
  }
  void memoize(std::uint64_t place) { memo_[place] = top(); }
  void get(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) refuse(format("asks for entry {} of its memo, which it has not made", place));
    stack_.push_back(found->second);
  }

  void tuple(std::size_t count) {
    std::vector<const PickleValue*> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push(Kind::kTuple).items = std::move(items);
  }
  void set_items(PickleValue* dict, const std::vector<PickleValue*>& items) {
    if (dict->kind != Kind::kDict) refuse("puts items into what is no dict");
    if (items.size() % 2 != 0) refuse("has a key without a value");
    dict->items.insert(dict->items.end(), items.begin(), items.end());
  }
  void append(PickleValue* list, const std::vector<PickleValue*>& items) {
    if (list->kind != Kind::kList) refuse("puts items into what is no list");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }

  void global(const std::string& module, const std::string& name) {
    const std::string asked = module + " " + name;
    const std::span<const std::string_view> names = allowed(of_);
    if (std::find(names.begin(), names.end(), asked) == names.end()) {
      const bool torch = of_ == PickleOf::kTorchState;
      throw Error(format("{}: asks for {}.{}, which is no part of {}: nothing was run, and the file is not read{}",
                         source_, module, name, torch ? "a state dict" : "a NumPy array",
                         torch ? ". If you trust it, save its weights alone where it was made: "
                                 "torch.save(model.state_dict(), FILE)"
                               : ""));
    }
    push(Kind::kGlobal).text = asked;
  }

  std::vector<std::int64_t> integers(const PickleValue* tuple) {
    if (tuple->kind != Kind::kTuple) refuse("a tensor's shape is no tuple");
    std::vector<std::int64_t> numbers;
    for (const PickleValue* item : tuple->items) {
      if (item->kind != Kind::kInt || item->number < 0) refuse("a tensor's shape holds no number of elements");
      numbers.push_back(item->number);
    }
    return numbers;
  }

  void reduce() {
    const PickleValue* arguments = pop();
    const PickleValue* callee = pop();
    if (callee->kind != Kind::kGlobal || arguments->kind != Kind::kTuple) refuse("calls what is no name of the list");
    const std::vector<const PickleValue*>& given = arguments->items;
    const std::string& name = callee->text;
    if (name == "torch._utils _rebuild_tensor_v2") {
      if (given.size() < 4 || given[0]->kind != Kind::kStorage || given[1]->kind != Kind::kInt || given[1]->number < 0)
        refuse("a tensor lacks its storage, offset, shape or strides");
      std::vector<std::int64_t> sizes = integers(given[2]), strides = integers(given[3]);
      if (sizes.size() != strides.size()) refuse("a tensor has another number of sizes than of strides");
      PickleValue& tensor = push(Kind::kTensor);
      tensor.storage = given[0];
      tensor.offset = given[1]->number;
      tensor.sizes = std::move(sizes);
      tensor.strides = std::move(strides);
    } else if (name == "torch._utils _rebuild_parameter" || name == "torch.nn.parameter Parameter") {
      if (given.empty() || given[0]->kind != Kind::kTensor) refuse("a parameter is no tensor");
      PickleValue& tensor = push(Kind::kTensor);
      tensor = *given[0];
    } else if (name == "collections OrderedDict" || name == "builtins dict") {
      if (!given.empty()) refuse("a dict that is made from something is not read");
      push(Kind::kDict);
    } else if (name == "torch Size" && given.size() == 1 && given[0]->kind == Kind::kTuple) {
      push(Kind::kTuple).items = given[0]->items;
    } else if (name.ends_with("multiarray _reconstruct")) {
      push(Kind::kArray);
    } else if (name == "numpy dtype" && !given.empty() && given[0]->kind == Kind::kText) {
      push(Kind::kText).text = given[0]->text;
    } else if (name == "_codecs encode" && given.size() == 2 && given[0]->kind == Kind::kText) {
      std::string decoded;
      if (given[1]->text != "latin1" || !latin1_bytes(given[0]->text, decoded)) refuse("holds text where bytes belong");
      push(Kind::kText).text = std::move(decoded);
    } else if (name.starts_with("builtins ") && given.size() <= 1) {
      PickleValue& list = push(name == "builtins tuple" ? Kind::kTuple : Kind::kList);
      if (!given.empty()) list.items = given[0]->kind == Kind::kDict ? decltype(list.items){} : given[0]->items;
    } else {
      refuse(format("calls {} as it is not called in a state dict", name));
    }
  }

  /// Of an OrderedDict: its attribute _metadata, versions of layers. Of an array: (1, shape, type, in Fortran's order,
  /// bytes); of its type "f8": (3, "<", ...).
  void build() {
    const std::vector<const PickleValue*>& state = pop()->items;
    PickleValue* value = top();
    if (value->kind == Kind::kDict) return;
    if (value->kind == Kind::kText && of_ == PickleOf::kNumpyArray) {
      if (state.size() < 2 || state[1]->kind != Kind::kText) refuse("an array's type has no byte order");
      value->type = state[1]->text + value->text;
    } else if (value->kind == Kind::kArray) {
      if (state.size() != 5 || state[2]->type.empty() || state[4]->kind != Kind::kText)
        refuse("an array lacks its shape, type or bytes");
      if (state[3]->kind != Kind::kBool || state[3]->number != 0) refuse("an array is in Fortran's order");
      value->sizes = integers(state[1]);
      value->type = state[2]->type;
      value->text = state[4]->text;
    } else {
      refuse("sets attributes of what has none");
    }
  }

  /// ("storage", torch.FloatStorage, "0", "cpu", 1024).
  void persistent() {
    const PickleValue* id = pop();
    if (id->kind != Kind::kTuple || id->items.size() != 5 || id->items[0]->kind != Kind::kText ||
        id->items[0]->text != "storage" || id->items[1]->kind != Kind::kGlobal || id->items[2]->kind != Kind::kText)
      refuse("an outside object is no storage of a tensor");
    PickleValue& storage = push(Kind::kStorage);
    const std::string& type = id->items[1]->text;
    storage.type = type.substr(type.find(' ') + 1);
    storage.key = id->items[2]->text;
  }

  void step(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        if (const unsigned char version = byte(); version < 2 || version > 5)
          refuse(format("is of pickle's protocol {}; 2 to 5 are read", version));
        return;
      case 0x95:  // FRAME
        little(8);
        return;
      case '(':
        stack_.push_back(nullptr);
        return;
      case '0':
        pop();
        return;
      case '1':
        above_mark();
        return;
      case '2':
        stack_.push_back(top());
        return;
      case 'N':
        push(Kind::kNone);
        return;
      case 0x88:
        return push_number(Kind::kBool, 1);
      case 0x89:
        return push_number(Kind::kBool, 0);
      case 'K':
        return push_number(Kind::kInt, byte());
      case 'M':
        return push_number(Kind::kInt, static_cast<std::int64_t>(little(2)));
      case 'J':
        return push_number(Kind::kInt, static_cast<std::int32_t>(static_cast<std::uint32_t>(little(4))));
      case 0x8a: {  // LONG1
        const unsigned char count = byte();
        if (count > 8) refuse("holds an integer of more than 64 bits");
        std::uint64_t value = little(count);
        if (count > 0 && count < 8 && (value >> (8 * count - 1)) & 1) value |= ~std::uint64_t{0} << (8 * count);
        return push_number(Kind::kInt, static_cast<std::int64_t>(value));
      }
      case 'G': {
        std::uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
        push(Kind::kFloat).real = std::bit_cast<double>(bits);
        return;
      }
      case 'X':
      case 'B':  // bytes
        return text(little(4));
      case 0x8c:
      case 'C':
        return text(byte());
      case 0x8d:
      case 0x8e:
        return text(little(8));
      case ']':
      case 0x8f:  // EMPTY_SET
        push(Kind::kList);
        return;
      case '}':
        push(Kind::kDict);
        return;
      case ')':
        push(Kind::kTuple);
        return;
      case 't': {
        const std::vector<PickleValue*> items = above_mark();
        push(Kind::kTuple).items.assign(items.begin(), items.end());
        return;
      }
      case 0x85:
      case 0x86:
      case 0x87:
        return tuple(code - 0x84u);
      case 'a': {
        PickleValue* item = pop();
        return append(top(), {item});
      }
      case 'e':
      case 0x90: {  // APPENDS, ADDITEMS
        const std::vector<PickleValue*> items = above_mark();
        return append(top(), items);
      }
      case 's': {
        PickleValue* value = pop();
        PickleValue* key = pop();
        return set_items(top(), {key, value});
      }
      case 'u': {
        const std::vector<PickleValue*> items = above_mark();
        return set_items(top(), items);
      }
      case 'q':
        return memoize(byte());
      case 'r':
        return memoize(little(4));
      case 0x94:
        return memoize(memo_.size());
      case 'h':
        return get(byte());
      case 'j':
        return get(little(4));
      case 'c': {
        const std::string module = line();
        return global(module, line());
      }
      case 0x93: {  // STACK_GLOBAL
        const PickleValue* name = pop();
        const PickleValue* module = pop();
        if (name->kind != Kind::kText || module->kind != Kind::kText) refuse("asks for something without a name");
        return global(module->text, name->text);
      }
      case 'R':
        return reduce();
      case 'b':
        return build();
      case 'Q':
        return persistent();
      default:
        --at_;
        refuse(format("instruction 0x{:02x} is not needed for data, and not followed", code));
    }
  }

  void text(std::uint64_t count) { push(Kind::kText).text = std::string(take(count)); }

  std::deque<PickleValue>& values_;
  std::string_view bytes_;
  std::string source_;
  PickleOf of_;
  std::size_t at_ = 0;
  std::vector<PickleValue*> stack_;  // null: a mark
  std::map<std::uint64_t, PickleValue*> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::string& source, PickleOf of) {
  root_ = PickleReader(*this, bytes, source, of).run();
}

}  // namespace cohort
