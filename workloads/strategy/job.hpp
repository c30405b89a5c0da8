// A job says what is trained: the method, the shape of a step's rows, and how long the whole run
// is.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "sim/base/member_words.hpp"
#include "sim/budget.hpp"
#include "workloads/strategy/failures.hpp"

namespace stepsim {

// Heads of labels: reward (of pairs), classify (texts), classify_tokens. Without a head texts are
// compared (embed), and an encoder may learn words that were masked (mlm).
enum class Method : std::uint8_t {
  sft,
  dpo,
  kto,
  grpo,
  reward,
  classify,
  classify_tokens,
  embed,
  mlm
};
inline constexpr auto method_names = words_through<Method::mlm>();

// Tokens of the documents that rows are made of, before they are cut to the row's length.
struct DocumentLength {
  double mean = 0;    // 0: as long as a row, or as the part of it that is filled
  double spread = 0;  // standard deviation over mean, of a log-normal distribution
  double most = 0;    // tokens, of rows that are not packed; 0: as many as fit into a row

  friend bool operator==(const DocumentLength&, const DocumentLength&) = default;
};

// Padding says how far a row is filled up that holds one document: to the length that rows have at
// most, as far as the longest row of its micro-batch, or not at all, where rows lie one behind the
// other.
enum class Padding : std::uint8_t { row, longest, none };
inline constexpr std::array<std::string_view, 3> padding_names{"row", "longest", "none"};
constexpr std::string_view to_text(Padding padding) {
  return padding_names[static_cast<std::size_t>(padding)];
}

// This says where a model whose ranks hold parts of it is put together to be saved: in the first
// rank's host memory, on each rank's device, or of adapters these alone, in host memory.
enum class SavedWhole : std::uint8_t { host, devices, trained };
inline constexpr std::array<std::string_view, 3> saved_whole_names{"host", "devices", "trained"};

// This is written so that a job can go on later.
struct Saving {
  double every = 0;     // optimizer steps; 0: nothing is saved
  bool weights = true;  // the model in one piece, as it is published
  SavedWhole gathers = SavedWhole::host;
  bool states = true;         // what the optimizer needs to go on
  bool asynchronous = false;  // training goes on once all is in host memory

  friend bool operator==(const Saving&, const Saving&) = default;
};

// The model runs over rows held back, without gradients.
struct Evaluating {
  std::int64_t micro_batch = 0;  // 0: never
  double every = 0;  // optimizer steps; below 1: this share of an epoch; 0: behind each epoch
  double rows = 0;   // sequences or pairs; below 1: this share of an epoch; 0: not known

  // Returns how many evaluations there are until then.
  double until(double steps, double epochs) const {
    return std::floor(every >= 1 ? steps / every : every > 0 ? epochs / every : epochs);
  }

  friend bool operator==(const Evaluating&, const Evaluating&) = default;
};

// This says how a data loader comes to where the job was: it draws the indices of what was seen,
// makes all those batches again, or begins anew.
enum class SkipData : std::uint8_t { indices, batches, none };
inline constexpr std::array<std::string_view, 3> skip_data_names{"indices", "batches", "none"};

struct Resuming {
  double after = 0;  // optimizer steps that were done before; 0: the job begins
  SkipData skip = SkipData::indices;

  friend bool operator==(const Resuming&, const Resuming&) = default;
};

struct Job {
  Method method = Method::sft;
  // A frozen copy runs forward too in dpo, kto and grpo, unless its results are stored.
  bool reference_model = true;
  std::int64_t labels = 1;   // numbers that a head of labels makes of a text or of each token
  bool label_bias = false;   // that head adds a number of its own to each
  bool word_head = false;    // reward: the head over the vocabulary stays, and runs as well
  std::int64_t texts = 2;    // embed: of an example, each of which is a row
  bool cached_loss = false;  // embed: the batch of a step is compared, which runs forward before
  std::int64_t scoring_passes = 0;  // grpo: forward passes of the policy without gradients
  bool only_update = false;         // gradients are there: a step is what the optimizer does
  bool only_evaluates = false;      // a step is one pass over rows held back
  bool first_steps = false;         // asked for are a run's first steps, which may be slower
  std::int64_t sequence = 4096, micro_batch = 1, accumulation = 1;
  std::int64_t global_batch = 0;  // sequences or pairs of an optimizer step; 0: not said
  double images = 0;              // of a row, whose tokens are among its own
  double pixels = 640 * 480;      // of an image
  double fill = 1;                // share of token slots that hold tokens
  bool packed = true;             // rows hold several documents, one after the other
  Padding padding = Padding::row;
  DocumentLength documents;
  // One of these, or none, says how long the whole run is.
  double tokens = 0, optimizer_steps = 0;
  double iterations = 0;  // micro-batches on each rank
  double samples = 0;     // sequences or pairs of one epoch, not packed
  double epochs = 1;
  Saving save;
  Evaluating evaluation;
  Resuming resume;
  Failures failures;
  double budget = usual_budget;  // operations that are written for a step

  // A row of the data set is two texts, of which one is better.
  bool has_pairs() const { return method == Method::dpo || method == Method::reward; }
  // Sequences that a micro-batch runs: a preference pair is two.
  std::int64_t rows() const {
    return (has_pairs() ? 2 : method == Method::embed ? texts : 1) * micro_batch;
  }
  bool has_labels() const { return method >= Method::reward && method <= Method::classify_tokens; }
  bool has_reference() const {
    return method != Method::sft && method <= Method::grpo && reference_model;
  }
  // Examples that a text is compared with.
  double compared() const {
    return static_cast<double>(micro_batch * (cached_loss ? accumulation : 1));
  }
  // The loss is about whole answers: of a pair, or of one that was liked or not.
  bool compares_answers() const { return method == Method::dpo || method == Method::kto; }
  // kto also runs each micro-batch with answers to other prompts, to estimate a divergence: the
  // policy without gradients, and the reference.
  std::int64_t reference_passes() const {
    return has_reference() ? (method == Method::kto ? 2 : 1) : 0;
  }
  std::int64_t estimating_passes() const { return method == Method::kto ? 1 : 0; }
  double slots() const { return static_cast<double>(sequence * rows()); }
  // Returns whether a mask has to say where rows of one document end, since they end at different
  // places.
  bool masks_ends() const {
    return !packed && rows() > 1 && padding != Padding::none &&
           (padding == Padding::longest || fill < 1 || documents.mean > 0);
  }

  friend bool operator==(const Job&, const Job&) = default;
};

}  // namespace stepsim
