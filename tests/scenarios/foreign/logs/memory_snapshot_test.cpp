#include "scenarios/foreign/logs/memory_snapshot.hpp"

#include "sim/base/error.hpp"
#include "sim/base/pickle.hpp"
#include "sim/base/whole_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "workloads/program/held.hpp"

using namespace stepsim;

namespace {

// A snapshot with one segment of one block and one entry; `change` writes what stands in the entry.
template <class Entry>
std::string snapshot(const Entry& entry) {
  PickleWriter pickle;
  pickle.begin_dict().value("segments").begin_list().begin_dict();
  pickle.member("address", 4096).member("total_size", 2048).member("device", 0);
  pickle.value("blocks").begin_list();
  pickle.begin_dict().member("size", 512).member("state", "inactive").end();
  pickle.begin_dict().member("size", 1024).member("requested_size", 1000);
  pickle.member("state", "active_allocated").end();
  pickle.end().end().end().value("device_traces").begin_list().begin_list();
  entry(pickle);
  return pickle.end().end().end().take();
}

void put_alloc(PickleWriter& pickle) {
  pickle.begin_dict().member("action", "alloc").member("addr", 4608).member("size", 1000);
  pickle.value("frames").begin_list().begin_dict();
  pickle.member("filename", "/a/modeling_llama.py").member("line", 7).member("name", "forward");
  pickle.end().end().end();
}

std::string message(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder.file("f"), bytes);
  try {
    load_memory_snapshot(folder.file("f"));
  } catch (const UserError& error) {
    return std::string(error.what()).substr(folder.file("f").size() + 2);
  }
  return "";
}

}  // namespace

TEST_CASE("a memory snapshot is read with its blocks, entries and frames", "[snapshot]") {
  const TemporaryFolder folder;
  write_file(folder.file("f"), snapshot(put_alloc));
  const MemorySnapshot read = load_memory_snapshot(folder.file("f"));
  REQUIRE(read.devices.size() == 1);
  CHECK(read.devices[0].reserved == 2048);
  REQUIRE(read.devices[0].live.size() == 1);
  CHECK(read.devices[0].live[0].address == 4608);
  CHECK(read.devices[0].live[0].bytes == 1000);
  REQUIRE(read.devices[0].events.size() == 1);
  CHECK(read.devices[0].events[0].what == SnapshotEvent::What::taken);
  const auto& stack = read.stacks[read.devices[0].events[0].stack];
  REQUIRE(stack.size() == 1);
  CHECK(stack[0].name == "forward");
  CHECK(stack[0].file == "/a/modeling_llama.py");
  CHECK(stack[0].line == 7);
}

TEST_CASE("what is no memory snapshot is refused with the byte and what was expected",
          "[snapshot]") {
  const auto entry = [](auto&&... parts) {
    return message(snapshot([&](PickleWriter& pickle) {
      pickle.begin_dict();
      (pickle.member(parts.first, parts.second), ...);
      pickle.end();
    }));
  };
  using Pair = std::pair<const char*, const char*>;
  using Number = std::pair<const char*, int>;
  CHECK(message(PickleWriter().value(1).take()) ==
        "byte 2: expected a memory snapshot of PyTorch, a dictionary with \"segments\" and "
        "\"device_traces\": torch.cuda.memory._dump_snapshot writes one");
  CHECK_THAT(entry(Number{"addr", 1}), Catch::EndsWith(": \"action\" is missing: expected a text"));
  CHECK_THAT(entry(Number{"action", 1}),
             Catch::EndsWith(": action: expected a text, found a whole number"));
  CHECK_THAT(entry(Pair{"action", "alloc"}, Number{"addr", 1}, Number{"size", -1}),
             Catch::EndsWith(": size: expected 0 or more bytes, found -1"));
  CHECK_THAT(
      entry(Pair{"action", "alloc"}, Number{"addr", 1}, Number{"size", 1}, Number{"frames", 1}),
      Catch::EndsWith(": frames: expected a list, found a whole number"));
  CHECK(entry(Pair{"action", "something new"}).empty());
  CHECK_THAT(message(snapshot([](PickleWriter& pickle) { pickle.value("x"); })),
             Catch::EndsWith(": expected an entry of a trace, a dictionary, found a text"));
}

TEST_CASE("an entry that stands in two places is refused, so that reading ends", "[snapshot]") {
  const std::string said = message(snapshot([](PickleWriter& pickle) {
    put_alloc(pickle);
    const std::uint32_t kept = pickle.keep();
    pickle.again(kept);
  }));
  CHECK_THAT(said, Catch::EndsWith(": an entry of a trace is there twice"));
}

TEST_CASE("every class of memory is of one kind that frames tell", "[snapshot]") {
  const FrameRules rules = frame_rules(source_data());
  for (const std::string_view held : held_names) {
    std::size_t kinds = 0;
    for (const FrameRules::Kind& kind : rules.kinds)
      kinds += static_cast<std::size_t>(std::ranges::count(kind.classes, held));
    INFO(held);
    CHECK(kinds == 1);
  }
}

TEST_CASE("frames tell the kind of a request and its moment", "[snapshot]") {
  const FrameRules rules = frame_rules(source_data());
  const auto said = [&](const std::vector<StackFrame>& frames) {
    const auto kind = rules.kind_of(frames);
    return std::pair(kind ? rules.kinds[*kind].name : "", std::string(rules.moment_of(frames)));
  };
  using Said = std::pair<std::string, std::string>;
  const StackFrame module{"_call_impl", "/v/torch/nn/modules/module.py", 1775};
  const StackFrame main{"<module>", "/home/me/train.py", 40};
  CHECK(said({}) == Said{"gradients and the backward pass", "backward"});
  CHECK(said({main}) == Said{"", "other"});
  CHECK(said({{"forward", "/v/transformers/models/llama/modeling_llama.py", 172}, module, main}) ==
        Said{"activations", "forward"});
  CHECK(said({{"forward", "/v/modeling_llama.py", 172},
              module,
              {"backward", "/v/torch/utils/checkpoint.py", 300}}) ==
        Said{"activations", "backward"});
  CHECK(said({{"_init_group", "/v/torch/optim/adamw.py", 170}, main}) ==
        Said{"optimizer", "optimizer"});
  CHECK(said({{"_all_gather_dtype", "/v/deepspeed/runtime/zero/partition_parameters.py", 1300},
              {"__all_gather_params_", "/v/deepspeed/runtime/zero/partitioned_param_coordinator.py",
               500},
              module}) == Said{"gathered parameters", "forward"});
  CHECK(
      said({{"foreach_reduce", "/v/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", 500},
            {"post_backward", "/v/torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py",
             600}}) == Said{"gradients on their way", "backward"});
  CHECK(said({{"convert", "/v/torch/nn/modules/module.py", 1340},
              {"_apply", "/v/torch/nn/modules/module.py", 930},
              {"to", "/v/torch/nn/modules/module.py", 1355}}) == Said{"parameters", "model load"});
  CHECK(said({{"checkpoints", "compute", 0}, {"forward of micro-batch 1", "compute", 0}}) ==
        Said{"activations", "forward"});
}
