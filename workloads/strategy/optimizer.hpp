// An optimizer is data: what it keeps of each number that it updates, and how its update runs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// One kernel that does everything to many tensors, an operator at a time over many tensors, or an
// operator at a time over one.
enum class UpdateKernels : std::uint8_t { fused, foreach, single };
inline constexpr std::array<std::string_view, 3> update_kernels_names{"fused", "foreach", "single"};

// This says who makes a matrix orthogonal: one of the ranks that share it, or each of them for
// itself.
enum class MatrixUpdates : std::uint8_t { dealt, everywhere };
inline constexpr std::array<std::string_view, 2> matrix_updates_names{"dealt", "everywhere"};

// This is the type of moments, beside fp32 copies.
enum class MomentType : std::uint8_t { fp32, bf16 };
inline constexpr std::array<std::string_view, 2> moment_type_names{"fp32", "bf16"};

// This is read from workloads/optimizers/NAME.yaml.
struct Optimizer {
  std::string name = "adamw", title{};
  std::string smaller{};          // offered in its place where memory is short
  double moments = 0;             // numbers that it keeps of each one it updates, as wide as that
  std::optional<double> bytes{};  // of them all together, where they have a type of their own
  bool factored = false;          // of a matrix these are a number for each row and each column
  // The kernels that `optimizer_kernels` may name; the first run unless told otherwise. None: it
  // has kernels of its own.
  std::vector<UpdateKernels> kernels{};
  double own_launches = 0;           // of those, for each tensor
  bool stops_behind_tensor = false;  // the host waits there until the device is done
  double operations = 0;  // of its own kernel on 32-bit numbers, for each that it updates
  std::vector<MomentType> moment_types{MomentType::fp32};
  // This says where its states may be, beside the device.
  struct Places {
    bool host = false, drives = false;
    bool both = false;  // a part on the host, the rest on the device

    friend bool operator==(const Places&, const Places&) = default;
  } places;
  struct Counts {                      // operator by operator
    std::array<double, 3> of_lists{};  // operators over one, two and three lists of tensors
    double passes = 0;                 // over a list, in or out, by all of them
    double passes_of_kernel = 0;       // by one kernel that does it all
    double all_for_lists = 0;          // lists as long as all that is updated, held on the way
    double all_for_tensor = 0;         // the same, tensor by tensor: as long as the largest

    double operators() const { return of_lists[0] + of_lists[1] + of_lists[2]; }

    friend bool operator==(const Counts&, const Counts&) = default;
  } counts;

  // Matrices of layers are updated as a whole: their momentum is made orthogonal by an iteration of
  // three products, X X', its square, and a polynomial of it times X. All else is updated as above.
  struct Orthogonal {
    double iterations = 0;
    double kernels = 0;    // of one matrix: momentum, type, norm
    double passes = 0;     // over the momentum, in its type
    double passes_16 = 0;  // in 16 bits
    double iteration_kernels = 0;
    double iteration_passes = 0;  // over the matrix in 16 bits, beside the products
    double gram_passes = 0;       // over the square of its smaller side
    double applied_kernels = 0;   // decay, and the update
    double applied_passes = 0;

    friend bool operator==(const Orthogonal&, const Orthogonal&) = default;
  };
  std::optional<Orthogonal> orthogonal{};
  std::optional<Orthogonal> orthogonal_compiled{};  // where a compiler has what is between products

  bool runs(UpdateKernels which) const;
  bool keeps_in(MomentType type) const;
  // Lists of tensors that one kernel for all goes over: parameters, gradients, moments.
  double lists() const { return 2 + moments; }

  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

inline constexpr std::array<std::string_view, 1> own_optimizer_keys{"smaller"};
inline constexpr Shelf optimizer_shelf{"workloads/optimizers", "optimizer", own_optimizer_keys};
Optimizer read_optimizer(const Table& table);

}  // namespace stepsim
