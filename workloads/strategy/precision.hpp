// A precision says in which type a model's matrix products run, as data: which of them, what is
// cast around them, and what of that is kept. With 32 bits the whole model has that type.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"
#include "topology/catalog.hpp"
#include "topology/gpu.hpp"

namespace stepsim {

// Matrices whose products may run in a type of their own. The core of attention, routers,
// embeddings and adapters stay in 16 bits.
enum class Products : std::uint8_t { attention, feed_forward, experts, head };
inline constexpr auto products_names = words_through<Products::head>();

// This is read from workloads/precisions/NAME.yaml.
struct Precision {
  std::string name = "bf16", title{};
  ProductType type = ProductType::bf16;
  // This is what a GPU has to multiply; formats with scales of blocks need units that came later.
  ProductType needs = ProductType::bf16;
  std::string vendor{};             // of GPUs that multiply it; empty: any
  std::array<bool, 4> products{};   // Products
  Constant<Ratio> rate{};           // over the rate of 16-bit products times the ratio of the peaks
  Constant<Seconds> module_call{};  // on the host: a module that casts, in each pass
  Constant<Seconds> module_call_wide{};  // the same module where it runs in 16 bits
  struct Cast {
    double kernels = 0;
    double bytes = 0;  // for each number that is cast

    friend bool operator==(const Cast&, const Cast&) = default;
  };
  struct Casts {
    Cast input, weight;  // of the forward pass
    Cast input_back, weight_back, gradient;
    Cast gathered;  // of a weight that came in this type, in the forward pass
    Cast turned;    // of what ranks collected in this type, for the product of the weights

    friend bool operator==(const Casts&, const Casts&) = default;
  };
  Casts casts;                // of a framework's own kernels, or of those that a compiler makes
  Casts eager;                // where no compiler does
  double numbers = bytes_16;  // bytes of a parameter, of an activation and of their gradients
  double saved = 0;           // bytes of a product's input that wait for the backward pass
  double weights = 0;         // bytes kept of each weight beside its 16-bit one
  bool once = false;          // weights are cast for the first micro-batch of a step only
  double collected = 0;       // bytes of a number that tensor-parallel ranks collect for a product
  bool gathers = false;       // FSDP may gather weights in this type

  bool whole() const { return numbers > bytes_16; }
  bool narrow() const { return type != ProductType::bf16 && !whole(); }
  bool multiplies(Products which) const { return products[static_cast<std::size_t>(which)]; }

  friend bool operator==(const Precision&, const Precision&) = default;
};

// Bytes of a number of that type where it is multiplied.
double bytes_of(ProductType type);
// A GPU whose peak in that type is no higher than in 16 bits has no units for it.
bool has_units(const Gpu& gpu, const Precision& precision);

inline constexpr Shelf precision_shelf{"workloads/precisions", "precision"};
Precision read_precision(const Table& table);

}  // namespace stepsim
