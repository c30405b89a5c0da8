// How far each program pads rows that hold one document, as its files say it.
#include <fstream>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

struct Padded {
  std::string_view name, text, padding;
};

Translation read(const TemporaryFolder& folder, const Padded& padded,
                 std::vector<Setting> settings = {}) {
  const std::string file = folder.file(std::string(padded.name));
  std::ofstream(file) << padded.text << "\n";
  settings.emplace_back("cluster", "{node: h100-8}");
  return translate_source(data, file, settings).value();
}

std::string value_at(const Translation& translation, std::string_view path) {
  for (const auto& line : translation.lines)
    if (line.path == path) return line.value;
  return "";
}

constexpr std::string_view trl =
    "model_name_or_path: Qwen/Qwen2.5-7B\nmax_length: 4096\nper_device_train_batch_size: 1\n";

}  // namespace

TEST_CASE("programs pad rows to the longest, to the limit, or not at all", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const std::string plain(trl);
  const std::string free = plain + "padding_free: true", packed = plain + "packing: true";
  const std::string axolotl =
      "base_model: Qwen/Qwen2.5-7B\nsequence_len: 4096\nmicro_batch_size: 1\n";
  const std::string filled = axolotl + "pad_to_sequence_len: true",
                    pairs = axolotl + "rl: dpo\npad_to_sequence_len: true",
                    tight = axolotl + "rl: dpo\ndpo_padding_free: true";
  const std::string rlhf =
      "deepspeed --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --max_len 4096 ";
  const std::string behind = rlhf + "--packing_samples";
  const std::string swift = "swift sft --model Qwen/Qwen2.5-7B --max_length 4096 ";
  const std::string flat = swift + "--padding_free true", mega =
                                                              "megatron sft --model "
                                                              "Qwen/Qwen2.5-7B ";
  const std::string boxes = mega + "--padding_free false";
  const std::string verl =
      "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen2.5-7B ";
  const std::string right = verl + "data.pad_mode=right";
  const std::string older =
      "torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
      "model.partial_pretrain=Qwen/Qwen2.5-7B";
  for (const Padded& each :
       {Padded{"trl.yaml", plain, "longest"}, Padded{"free.yaml", free, "none"},
        Padded{"packed.yaml", packed, ""}, Padded{"axolotl.yaml", axolotl, "longest"},
        Padded{"filled.yaml", filled, ""}, Padded{"pairs.yaml", pairs, "longest"},
        Padded{"tight.yaml", tight, "none"}, Padded{"rlhf.sh", rlhf, "longest"},
        Padded{"behind.sh", behind, "none"}, Padded{"swift.sh", swift, "longest"},
        Padded{"flat.sh", flat, "none"}, Padded{"mega.sh", mega, "none"},
        Padded{"boxes.sh", boxes, "longest"}, Padded{"verl.sh", verl, "none"},
        Padded{"right.sh", right, ""}, Padded{"older.sh", older, ""}}) {
    INFO(each.name);
    CHECK(value_at(read(folder, each), "job.padding") == each.padding);
  }
}

TEST_CASE("lengths of rows that are told take the place of the guess", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const Padded file{"trl.yaml", trl, "longest"};
  CHECK(value_at(read(folder, file), "job.fill").starts_with("{value: 1, low: 0.1, "));
  const Translation told = read(folder, file, {{"job.document_length.mean", "700"}});
  CHECK(value_at(told, "job.fill").empty());
  CHECK(value_at(told, "job.document_length.spread").starts_with("{value: 0.8, "));
  CHECK(value_at(read(folder, file, {{"job.document_length", "{mean: 700}"}}),
                 "job.document_length.spread")
            .empty());
  CHECK(value_at(read(folder, file, {{"job.packing", "true"}}), "job.padding").empty());
}
