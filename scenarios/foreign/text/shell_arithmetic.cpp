#include "scenarios/foreign/text/shell_arithmetic.hpp"

#include <array>
#include <limits>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr int deepest_term = 60;  // brackets in brackets

struct BinaryOperator {
  std::string_view sign;
  int binds;  // tighter with a larger number
};
constexpr std::array operators{
    BinaryOperator{"||", 1}, BinaryOperator{"&&", 2}, BinaryOperator{"==", 3},
    BinaryOperator{"!=", 3}, BinaryOperator{"<=", 4}, BinaryOperator{">=", 4},
    BinaryOperator{"<", 4},  BinaryOperator{">", 4},  BinaryOperator{"+", 5},
    BinaryOperator{"-", 5},  BinaryOperator{"**", 7}, BinaryOperator{"*", 6},
    BinaryOperator{"/", 6},  BinaryOperator{"%", 6}};

using Value = std::optional<std::int64_t>;

Value power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (exponent < 0 || exponent > 62) return std::nullopt;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  return result;
}

Value quotient(std::string_view sign, std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
  return sign == "/" ? a / b : a % b;
}

Value apply(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (sign == "+") return __builtin_add_overflow(a, b, &result) ? Value{} : result;
  if (sign == "-") return __builtin_sub_overflow(a, b, &result) ? Value{} : result;
  if (sign == "*") return __builtin_mul_overflow(a, b, &result) ? Value{} : result;
  if (sign == "/" || sign == "%") return quotient(sign, a, b);
  if (sign == "**") return power(a, b);
  if (sign == "||") return a != 0 || b != 0;
  if (sign == "&&") return a != 0 && b != 0;
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  if (sign == "<=") return a <= b;
  if (sign == ">=") return a >= b;
  return sign == "<" ? a < b : a > b;
}

class Reader {
 public:
  Reader(std::string_view text, const std::function<Value(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  Value all() {
    const Value value = choice();
    skip();
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  bool take(std::string_view sign) {
    skip();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }

  Value choice() {
    const Value condition = binary(1);
    if (!take("?")) return condition;
    const Value yes = choice();
    if (!take(":")) return std::nullopt;
    const Value no = choice();
    return condition ? (*condition != 0 ? yes : no) : std::nullopt;
  }

  Value binary(int loosest) {
    Value left = single();
    while (left) {
      skip();
      const BinaryOperator* found = nullptr;
      for (const BinaryOperator& each : operators)
        if (found == nullptr && rest_.starts_with(each.sign)) found = &each;
      if (found == nullptr || found->binds < loosest) break;
      rest_.remove_prefix(found->sign.size());
      const Value right = binary(found->binds + 1);
      left = right ? apply(found->sign, *left, *right) : std::nullopt;
    }
    return left;
  }

  Value single() {
    if (++depth_ > deepest_term) return std::nullopt;
    const Value value = unguarded_single();
    --depth_;
    return value;
  }

  Value unguarded_single() {
    if (take("-")) {
      const Value value = single();
      return value ? apply("-", 0, *value) : std::nullopt;
    }
    if (take("+")) return single();
    if (take("!")) {
      const Value value = single();
      return value ? Value{*value == 0} : std::nullopt;
    }
    if (take("(")) {
      const Value value = choice();
      return take(")") ? value : std::nullopt;
    }
    skip();
    std::size_t size = 0;
    while (size < rest_.size() && (is_letter_or_digit(rest_[size]) || rest_[size] == '_')) ++size;
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (word.empty()) return std::nullopt;
    if (!is_digit(word.front())) return value_of_(std::string(word));
    return number_from<std::int64_t>(word);
  }

  std::string_view text_, rest_ = text_;
  const std::function<Value(const std::string&)>& value_of_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string&)>& value_of) {
  return Reader(text, value_of).all();
}

}  // namespace stepsim
