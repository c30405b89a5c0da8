#include "topology/prices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

bool is_date(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  return std::ranges::equal(text, form, [](char said, char expected) {
    return expected == 'd' ? said >= '0' && said <= '9' : said == expected;
  });
}

std::string date_at(const Table& table, std::string_view key) {
  std::string date = table.text(key);
  if (!is_date(date))
    table.problem(key, fmt::format("expected a date such as 2026-09-20, found \"{}\"", date));
  return date;
}

// Returns whether an offer goes before another: one of as many GPUs as a node has, then the
// cheaper.
bool goes_before(const Price& one, const Price& other, std::uint32_t gpus) {
  const bool fits = one.gpus == gpus, other_fits = other.gpus == gpus;
  return fits != other_fits ? fits : one.rate < other.rate;
}

// "lambda" asks for its price on demand.
struct AskedPrice {
  std::string name, kind;
};

AskedPrice read_asked(const Catalogue& data, std::string_view said) {
  const std::size_t colon = said.find(':');
  AskedPrice asked{std::string(said.substr(0, colon)),
                   std::string(colon == said.npos ? price_kinds.front() : said.substr(colon + 1))};
  const std::vector<std::string> names = names_on(data, price_shelf);
  if (asked.name != "cheapest" && !holds(names, asked.name))
    throw UserError(
        fmt::format("--price: expected money for a GPU and an hour, a provider, or "
                    "cheapest; no provider \"{}\"{}; `stepsim list prices` names them",
                    asked.name, did_you_mean(asked.name, names)));
  if (!holds(price_kinds, asked.kind))
    throw UserError(fmt::format("--price: \"{}\" is no kind of price; expected {}", asked.kind,
                                fmt::join(price_kinds, ", ")));
  return asked;
}

std::vector<Price> offers_of(const Catalogue& data, const std::string& kind, const Gpu& gpu) {
  std::vector<Price> offers;
  for (const std::string& each : names_on(data, price_shelf)) {
    const Document file = open_entry(data, price_shelf, each);
    Provider provider = read_provider(file.root());
    file.finish();
    std::erase_if(provider.prices,
                  [&](const Price& price) { return price.gpu != gpu.name || price.kind != kind; });
    std::ranges::move(provider.prices, std::back_inserter(offers));
  }
  return offers;
}

}  // namespace

Provider read_provider(const Table& table) {
  Provider provider{.name = table.text("name"),
                    .title = table.text("title"),
                    .currency = table.text("currency"),
                    .oldest = date_at(table, "oldest"),
                    .prices = {}};
  for (const Table& each : table.tables("rates")) {
    Price price{.provider = provider.name,
                .gpu = each.text("gpu"),
                .gpus = static_cast<std::uint32_t>(each.integer_or("of", 1, 1, 1 << 10)),
                .kind = each.text("kind"),
                .rate = each.number("price", 0, 1e6),
                .date = date_at(each, "date")};
    each.text("source");
    if (!holds(price_kinds, price.kind))
      each.problem("kind", fmt::format("expected one of {}, found \"{}\"",
                                       fmt::join(price_kinds, ", "), price.kind));
    if (price.date < provider.oldest)
      each.problem("date", fmt::format("{} is before {}, the oldest of this file", price.date,
                                       provider.oldest));
    provider.prices.push_back(std::move(price));
  }
  return provider;
}

std::optional<Price> price_of(const Catalogue& data, std::string_view said,
                              const Cluster& cluster) {
  const AskedPrice asked = read_asked(data, said);
  std::vector<Price> own = offers_of(data, asked.kind, cluster.gpu);
  if (asked.name != "cheapest")
    std::erase_if(own, [&](const Price& price) { return price.provider != asked.name; });
  if (own.empty()) return std::nullopt;
  return *std::ranges::min_element(own, [&](auto& one, auto& other) {
    return goes_before(one, other, cluster.gpus_per_node());
  });
}

Price price_called(const Catalogue& data, std::string_view said, const Cluster& cluster) {
  if (std::optional<Price> price = price_of(data, said, cluster)) return *std::move(price);
  const AskedPrice asked = read_asked(data, said);
  std::vector<std::string> others;
  for (const Price& price : offers_of(data, asked.kind, cluster.gpu))
    if (!holds(others, price.provider)) others.push_back(price.provider);
  throw UserError(
      fmt::format("--price: {} has no {} price of {}; {}", asked.name, asked.kind, cluster.gpu.name,
                  others.empty() ? "nobody here has: say the money for a GPU and an hour"
                                 : fmt::format("these have: {}", fmt::join(others, ", "))));
}

}  // namespace stepsim
