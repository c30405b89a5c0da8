// Python programs of people's own, and the scripts that start them: what is taken of each.
#include <fmt/format.h>

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/repository.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

const std::string model =
    "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', torch_dtype=torch.bfloat16)\n";
const std::string trainer =
    "args = TrainingArguments(per_device_train_batch_size=2, bf16=True)\n"
    "t = Trainer(model=model, args=args)\n";

bool assumes(const Translation& read, std::string_view what) {
  return std::ranges::any_of(read.assumptions,
                             [&](const Assumption& each) { return each.what == what; });
}

}  // namespace

TEST_CASE("a rank means adapters, in any of the words that people have for them",
          "[scenarios][sources]") {
  const Repository own;
  const std::string rows =
      "{\"model_name_or_path\": \"Qwen/Qwen2.5-7B\", \"output_dir\": \"o\", "
      "\"per_device_train_batch_size\": 1, \"lora_rank\": 64";
  own.with("full/a.json", rows + "}").with("sft/qlora/b.json", rows + "}");
  own.with("c.json", rows + ", \"train_mode\": \"qlora\"}");
  own.with("d.json", rows + ", \"train_mode\": \"full\"}").with("e.json", rows + ", \"bits\": 4}");
  CHECK(value_at(own.read("full/a.json"), "strategy.lora.rank") == "64");
  CHECK(value_at(own.read("full/a.json"), "strategy.lora.quantised").empty());
  CHECK(assumes(own.read("full/a.json"), "adapters"));
  CHECK(value_at(own.read("sft/qlora/b.json"), "strategy.lora.quantised") == "nf4_single");
  CHECK(value_at(own.read("c.json"), "strategy.lora.quantised") == "nf4_single");
  CHECK(value_at(own.read("d.json"), "strategy.lora.rank").empty());
  CHECK(value_at(own.read("e.json"), "strategy.lora.quantised") == "nf4");
  own.with("cli.sh", "trl sft --model_name_or_path Qwen/Qwen2.5-7B --lora_r 8\n");
  CHECK(value_at(own.read("cli.sh"), "strategy.lora.rank").empty());  // TRL wants use_peft
  own.with("prompt.py", model + "m = get_peft_model(model, PromptEncoderConfig())\n" + trainer);
  const Translation prompt = own.read("prompt.py");
  CHECK(std::ranges::any_of(prompt.keys, [](const SourceKey& key) {
    return key.key == "other_adapter" && key.fate == KeyFate::unmodelled;
  }));
}

TEST_CASE("Unsloth takes all matrices and bf16 where it is told nothing", "[scenarios][sources]") {
  const Repository own;
  own.with("u.py",
           "model, t = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-7B', dtype=None)\n"
           "model = FastLanguageModel.get_peft_model(model, r=16)\n"
           "t = SFTTrainer(model=model, args=SFTConfig(max_steps=3))\n");
  const Translation read = own.read("u.py");
  CHECK(value_at(read, "strategy.lora.targets") == "linear");
  CHECK(value_at(read, "strategy.lora.modules").empty());
  CHECK(value_at(read, "strategy.lora.frozen").empty());
  CHECK(value_at(read, "strategy.checkpointing") == "full");
  CHECK(value_at(read, "cluster.gpus_per_node") == "1");
}

TEST_CASE("types by all their names", "[scenarios][sources]") {
  const Repository own;
  const auto frozen = [&](const std::string& type) {
    own.with("t.py", "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B'" + type +
                         ")\nm = get_peft_model(model, LoraConfig(r=8))\n" + trainer);
    return value_at(own.read("t.py"), "strategy.lora.frozen");
  };
  CHECK(frozen("") == "fp32");
  CHECK(frozen(", torch_dtype=torch.half").empty());
  CHECK(frozen(", torch_dtype='bfloat16'").empty());
  CHECK(frozen(", dtype=torch.float16").empty());
  CHECK(frozen(", load_in_8bit=True").empty());
  CHECK(frozen(", torch_dtype=torch.float32") == "fp32");
}

TEST_CASE("adapters of peft's own settings drop nothing unless they say so",
          "[scenarios][sources]") {
  const Repository own;
  const auto dropout = [&](const std::string& said) {
    own.with("t.py",
             model + "model = get_peft_model(model, LoraConfig(r=8" + said + "))\n" + trainer);
    return value_at(own.read("t.py"), "strategy.lora.dropout");
  };
  CHECK(dropout("") == "0");  // the stack of TRL has 0.05
  CHECK(dropout(", lora_dropout=0.0") == "0");
  CHECK(dropout(", lora_dropout=0.1") == "0.1");
}

TEST_CASE("a program's own trainer is the one of transformers", "[scenarios][sources]") {
  const Repository own;
  own.with("a.py", "class MyTrainer(Trainer):\n    pass\n" + model +
                       "x = tokenizer(text, max_length=384, truncation=True)\n"
                       "t = MyTrainer(model=model, args=TrainingArguments(bf16=True))\n");
  const Translation read = own.read("a.py");
  CHECK(value_at(read, "strategy.cross_entropy") == "logits");
  CHECK(value_at(read, "strategy.checkpointing") == "none");
  CHECK(value_at(read, "job.sequence") == "384");
  CHECK(value_at(read, "cluster.gpus_per_node") == "1");
  own.with("b.py", model + trainer);
  CHECK(assumes(own.read("b.py"), "where rows are cut"));
  own.with("c.py", "MAX_LENGTH = 200\n" + model + trainer);
  CHECK(value_at(own.read("c.py"), "job.sequence") == "200");
  CHECK(value_at(own.read("c.py", {{"max_length", "300"}}), "job.sequence") == "300");
  own.with("d.py", "class LomoTrainer:\n    pass\n" + model +
                       "t = LomoTrainer(model, TrainingArguments())\n");
  CHECK_THAT(own.refusal("d.py"), Contains("LomoTrainer is no trainer of transformers or TRL"));
  own.with("e.py", "t = MLXTrainer(args=MLXTrainingConfig(iters=3))\n");
  CHECK_THAT(own.refusal("e.py"), Contains("MLXTrainer is no trainer"));
  own.with("f.py", "from trl import SFTTrainer as Own\n" + model +
                       "t = OwnTrainer(model, args=SFTConfig())\n");
  CHECK(assumes(own.read("f.py"), "trainer"));
}

TEST_CASE("defaults of dataclasses, parsers, functions and settings files are read",
          "[scenarios][sources]") {
  const Repository own;
  const std::string head = "model = AutoModelForCausalLM.from_pretrained(";
  own.with("data.py",
           "@dataclass\nclass ModelArguments:\n    model_name: str = field(default='Qwen/"
           "Qwen2.5-7B')\n@dataclass\nclass TrainArgs(transformers.TrainingArguments):\n"
           "    model_max_length: int = field(default=640)\n    optim: str = 'adamw_torch'\n"
           "m, a = HfArgumentParser((ModelArguments, TrainArgs)).parse_args_into_dataclasses()\n" +
               head + "m.model_name)\nt = Trainer(model=model, args=a)\n");
  CHECK(value_at(own.read("data.py"), "job.sequence") == "640");
  CHECK(value_at(own.read("data.py"), "strategy.optimizer_kernels") == "foreach");
  own.with("fire.py", "def train(base='Qwen/Qwen2.5-7B', rows: int = 6):\n    " + head +
                          "base)\n    t = Trainer(model=model, args=TrainingArguments("
                          "per_device_train_batch_size=rows))\nfire.Fire(train)\n");
  CHECK(value_at(own.read("fire.py"), "job.micro_batch") == "6");
  own.with("conf/train.yaml", "model: {name: Qwen/Qwen2.5-7B}\ntraining: {rows: 5}\n");
  own.with("yaml.py", "with open('conf/train.yaml') as f:\n    cfg = yaml.safe_load(f)\n" + head +
                          "cfg['model']['name'])\nt = Trainer(model=model, args=TrainingArguments("
                          "per_device_train_batch_size=cfg['training']['rows']))\n");
  CHECK(value_at(own.read("yaml.py"), "job.micro_batch") == "5");
  own.with("hydra.py",
           "@hydra.main(config_path='conf', config_name='train')\ndef main(cfg):\n    " + head +
               "cfg.model.name)\n    t = Trainer(model=model, args="
               "TrainingArguments(per_device_train_batch_size=cfg.training."
               "rows))\nmain()\n");
  CHECK(value_at(own.read("hydra.py"), "job.micro_batch") == "5");
  own.with("shared.py", "NAME = 'Qwen/Qwen2.5-7B'\n");
  own.with("imports.py", "from shared import NAME\n" + head + "NAME)\n" + trainer);
  CHECK(value_at(own.read("imports.py"), "model") == "\"qwen2.5-7b\"");
  // What lies outside the repository is not read.
  own.with("out.py", "cfg = yaml.safe_load(open('../../etc/hostname.yaml'))\n" + head +
                         "cfg['name'])\n" + trainer);
  CHECK_THAT(own.refusal("out.py"), Contains("model_name_or_path"));
}

TEST_CASE("what a refusal of a Python file advises works", "[scenarios][sources]") {
  const Repository own;
  own.with("a.py",
           "model = AutoModelForCausalLM.from_pretrained(args.base, torch_dtype=cfg['t'])\n"
           "t = Trainer(model=model, args=TrainingArguments(per_device_train_batch_size="
           "rows, optim=pick()))\n");
  const std::string refused = own.refusal("a.py");
  CHECK_THAT(refused, Contains("--set base=... says it"));
  CHECK_THAT(refused, Contains("--set rows=... says it"));
  const Translation read = own.read(
      "a.py",
      {{"base", "Qwen/Qwen2.5-7B"}, {"rows", "3"}, {"t", "bfloat16"}, {"optim", "adafactor"}});
  CHECK(value_at(read, "model") == "\"qwen2.5-7b\"");
  CHECK(value_at(read, "job.micro_batch") == "3");
  CHECK(value_at(read, "strategy.optimizer") == "adafactor");
}

TEST_CASE("loops of people's own are read", "[scenarios][sources]") {
  const Repository own;
  const std::string loop = "parser.add_argument('--max_seq_length', type=int, default=256)\n" +
                           model +
                           "loader = DataLoader(data, batch_size=args.rows, shuffle=True)\n"
                           "optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)\n"
                           "for batch in loader:\n    loss = model(**batch).loss\n";
  own.with("plain.py", "rows = 3\nargs = Namespace(rows=3)\n" + loop +
                           "    loss.backward()\n    optimizer.step()\n");
  const Translation plain = own.read("plain.py");
  CHECK(value_at(plain, "job.micro_batch") == "3");
  CHECK(value_at(plain, "job.sequence") == "256");
  CHECK(value_at(plain, "strategy.optimizer") == "adamw");
  CHECK(value_at(plain, "strategy.optimizer_kernels") == "foreach");
  CHECK(value_at(plain, "strategy.cross_entropy") == "logits");
  CHECK(value_at(plain, "job.save.every").empty());
  own.with("accelerate.py",
           "accelerator = Accelerator(gradient_accumulation_steps=8, mixed_precision='bf16')\n"
           "args = Namespace(rows=2)\n" +
               loop +
               "    model.gradient_checkpointing_enable()\n    accelerator.backward(loss)\n");
  const Translation accelerated = own.read("accelerate.py");
  CHECK(value_at(accelerated, "job.gradient_accumulation") == "8");
  CHECK(value_at(accelerated, "strategy.checkpointing") == "full");
  own.with("engine.py",
           "config = {'train_micro_batch_size_per_gpu': 4, 'zero_optimization': {'stage': 2}}\n"
           "args = Namespace(rows=2)\n" +
               model +
               "engine, _, _, _ = deepspeed.initialize(model=model, config=config)\n"
               "opt = FusedAdam(model.parameters())\nengine.backward(loss)\n");
  const Translation engine = own.read("engine.py");
  CHECK(value_at(engine, "strategy.zero") == "2");
  CHECK(value_at(engine, "job.micro_batch") == "4");
  own.with("fabric.py",
           "fabric = L.Fabric(devices=4, precision='bf16-mixed', strategy='fsdp')\n"
           "args = Namespace(rows=2)\n" +
               loop + "    fabric.backward(loss)\n");
  const Translation fabric = own.read("fabric.py");
  CHECK(value_at(fabric, "strategy.zero") == "fsdp");
  CHECK(value_at(fabric, "cluster.gpus_per_node") == "4");
  own.with("nothing.py", "x = 1\n");
  CHECK_THAT(own.refusal("nothing.py"), Contains("no loop of its own"));
}

TEST_CASE("programs lie in the folders above a script", "[scenarios][sources]") {
  const Repository own;
  own.with("train/sft.py",
           "class Own(Trainer):\n    pass\nmodel = AutoModelForCausalLM."
           "from_pretrained(args.model)\nt = SavingTrainer(model=model, "
           "args=TrainingArguments(per_device_train_batch_size=args.rows))\n"
           "class SavingTrainer(Trainer):\n    pass\n");
  own.with("scripts/deep/run.sh",
           "torchrun --nproc_per_node 4 train/sft.py --model "
           "Qwen/Qwen2.5-7B --rows 3 > log 2>&1\n");
  const Translation read = own.read("scripts/deep/run.sh");
  CHECK(value_at(read, "job.micro_batch") == "3");
  CHECK(value_at(read, "strategy.cross_entropy") == "logits");
  CHECK(value_at(read, "cluster.gpus_per_node") == "4");
  own.with("scripts/one.sh", "python -m train.sft --model Qwen/Qwen2.5-7B --rows 4 > log\n");
  CHECK(value_at(own.read("scripts/one.sh"), "job.micro_batch") == "4");
  CHECK(value_at(own.read("scripts/one.sh"), "cluster.gpus_per_node") == "1");
  own.with("scripts/here.sh", "python $HERE/train/sft.py --model Qwen/Qwen2.5-7B --rows 5 >log\n");
  CHECK(value_at(own.read("scripts/here.sh"), "job.micro_batch") == "5");
}

TEST_CASE("keys of older releases, and machines out of batches", "[scenarios][sources]") {
  const Repository own;
  own.with("old.toml",
           "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\ntensor_parallel_degree = 8\n"
           "data_parallel_shard_degree = 2\nbatch_size = 1\nseq_len = 2048\n[checkpoint]\n"
           "interval_type = \"steps\"\n");
  const Translation old = own.read("old.toml");
  CHECK(value_at(old, "strategy.tensor_parallel.size") == "8");
  CHECK(value_at(old, "cluster.nodes") == "2");
  own.with("ds.json",
           "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 2, "
           "\"gradient_accumulation_steps\": 4, \"zero_optimization\": {\"stage\": 3}}");
  CHECK(value_at(own.read("ds.json", {{"model", "llama-3.1-8b"}}), "cluster.nodes") == "4");
  own.with("grpo.py",
           "t = GRPOTrainer(model='Qwen/Qwen2.5-7B', args=GRPOConfig(use_vllm=True, "
           "vllm_device='auto', per_device_train_batch_size=8))\n");
  own.with("grpo.sh", "accelerate launch --num_processes 7 grpo.py\n");
  const Translation older = own.read("grpo.sh");
  CHECK(value_at(older, "job.vllm_num_engines") == "1");
  CHECK(value_at(older, "job.num_learners_per_node") == "[7]");
  own.with("queue.sh", "#SBATCH --gres=gpu:quadro99:2\nsrun python grpo.py\n");
  CHECK(std::ranges::any_of(own.read("queue.sh").assumptions, [](const Assumption& each) {
    return each.what == "machine" && each.why.find("quadro99") != std::string::npos;
  }));
}

TEST_CASE("adapters that a condition leaves out are not taken", "[scenarios][sources]") {
  const Repository own;
  const std::string text =
      "parser.add_argument('--use_lora', action='store_true')\nargs = parser.parse_args()\n"
      "config = LoraConfig(r=4)\n" +
      model + "if args.use_lora:\n    model = get_peft_model(model, config)\n" + trainer;
  own.with("a.py", text).with("a.sh", "python a.py --use_lora\n").with("b.sh", "python a.py\n");
  CHECK(value_at(own.read("a.sh"), "strategy.lora.rank") == "4");
  CHECK(value_at(own.read("b.sh"), "strategy.lora.rank").empty());
  CHECK(value_at(own.read("a.py"), "strategy.lora.rank").empty());
}

TEST_CASE("a class of the program's own is not TRL's by its name", "[scenarios][sources]") {
  const Repository own;
  const std::string rows = "loader = DataLoader(data, batch_size=3)\n" + model +
                           "x = tokenizer(text, max_length=512, truncation=True)\n"
                           "optimizer = Adam(model.parameters())\n";
  own.with("sft.py",
           "class SFTTrainer:\n  def fit(self):\n    loss = self.step()\n    loss.backward()\n");
  own.with("a.py", "from sft import SFTTrainer\n" + rows +
                       "t = SFTTrainer(model=model, optim=optimizer)\nt.fit()\n"
                       "parser.add_argument('--max_epochs', type=int, default=2)\n"
                       "args = parser.parse_args()\n");
  const Translation read = own.read("a.py");
  CHECK(value_at(read, "job.micro_batch") == "3");
  CHECK(value_at(read, "job.sequence") == "512");
  CHECK(value_at(read, "job.epochs") == "2");
  CHECK(value_at(read, "strategy.cross_entropy") == "logits");
  CHECK(value_at(read, "strategy.checkpointing") == "none");
  own.with("split.py", rows +
                           "for part in batch.split(micro_rows):\n  loss.backward()\n"
                           "micro_rows = 2\n");
  CHECK_THAT(own.refusal("split.py"), Contains("--set gradient_accumulation_steps="));
  CHECK(value_at(own.read("split.py", {{"gradient_accumulation_steps", "4"}}),
                 "job.gradient_accumulation") == "4");
  own.with("grpo.py", rows +
                          "def train_with_grpo():\n  loss = f(advantages)\n  loss.backward()\n"
                          "train_with_grpo()\n");
  CHECK_THAT(own.refusal("grpo.py"), Contains("learns from answers which it generates"));
  own.with("text.py",
           "'''\nUsage:\n    accelerate launch --num_processes 4 --mixed_precision bf16 \\\\\n"
           "        text.py --rows 3\n'''\n" +
               rows + "loss.backward()\n");
  CHECK(value_at(own.read("text.py"), "cluster.gpus_per_node") == "4");
  own.with("queue.sh", "#SBATCH --gres=\"gpu:a6000:1\"\npython text.py\n");
  CHECK(value_at(own.read("queue.sh"), "cluster.node") == "a6000-1");
  own.with("b.py", "class SFTTrainer(trl.SFTTrainer):\n  pass\n" + model +
                       "t = SFTTrainer(model=model, args=SFTConfig(max_length=300))\n");
  CHECK(value_at(own.read("b.py"), "strategy.cross_entropy") == "fused");
}

TEST_CASE("a file of which most keys are strange is of nobody's program", "[scenarios][sources]") {
  const Repository own;
  const std::string text =
      "base_model: mistralai/Mistral-7B-v0.1\nnum_epochs: 3\nrows_of_batch: 4\n"
      "floats: fp16\nadapter_settings: {kind: x, size: 8}\nreport: {project: y, every: 3}\n";
  own.with("a.yaml", text);
  CHECK_THAT(own.refusal("a.yaml"), Contains("give the program") && Contains("--from axolotl"));
  CHECK(value_at(own.read("a.yaml", {{"source.kind", "axolotl"}}), "job.method") == "sft");
  own.with("own.yaml", "base_model: mistralai/Mistral-7B-v0.1\nnum_epochs: 3\nuse_lora: true\n");
  CHECK_THAT(own.refusal("own.yaml"), Contains("looks like nothing"));
  own.with("b.yaml",
           "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: o\ntrain_batch_size: 8\n"
           "per_device_train_batch_size: 2\n");
  CHECK(value_at(own.read("b.yaml"), "job.micro_batch") == "2");
  own.with("c.json", R"({"model_name_or_path": "Qwen/Qwen2.5-7B", "train_file": "d.jsonl",
                         "output_dir": "o", "load_in_4bit": true})");
  const Translation few_bits = own.read("c.json");
  CHECK(value_at(few_bits, "strategy.lora.quantised") == "nf4_single");
  CHECK(assumes(few_bits, "adapters"));
}

TEST_CASE("what a program says of its model and adapters by other ways is taken",
          "[scenarios][sources]") {
  const Repository own;
  own.with("a.py",
           "args = DPOConfig(model_init_kwargs={'torch_dtype': torch.bfloat16,\n"
           "                                    'attn_implementation': 'flash_attention_2'})\n"
           "t = DPOTrainer(model='Qwen/Qwen2.5-7B', args=args, peft_config=LoraConfig(r=4))\n");
  CHECK(value_at(own.read("a.py"), "strategy.attention") == "flash");
  CHECK(value_at(own.read("a.py"), "strategy.lora.frozen").empty());
  own.with("b.py", "from peft import LoraConfig as Own\n" + model +
                       "model = get_peft_model(model, Own(r=12))\n" + trainer);
  CHECK(value_at(own.read("b.py"), "strategy.lora.rank") == "12");
  own.with("c.py", model + "model = PeftModel.from_pretrained(model, 'run', is_trainable=True)\n" +
                       trainer);
  own.with("d.py", model + "model = PeftModel.from_pretrained(model, 'run')\n" + trainer);
  CHECK(value_at(own.read("c.py"), "strategy.lora.rank") == "8");
  CHECK(value_at(own.read("d.py"), "strategy.lora.rank").empty());
  own.with("e.yaml", "lora: {on: true, rank: 24}\n")
      .with("e.py", "lora = dict(yaml.safe_load(open('e.yaml'))['lora'])\n" + model +
                        "if bool(lora['on']):\n"
                        "    model = get_peft_model(model, LoraConfig(r=lora['rank']))\n" +
                        trainer);
  CHECK(value_at(own.read("e.py"), "strategy.lora.rank") == "24");
  own.with("f.py", model +
                       "args = TrainingArguments(\n"
                       "    per_device_train_batch_size=config['train']['rows'])\n"
                       "t = Trainer(model=model, args=args)\n");
  CHECK_THAT(own.refusal("f.py"), Contains("--set rows="));
  CHECK(value_at(own.read("f.py", {{"rows", "3"}}), "job.micro_batch") == "3");
  own.with("g.py", model +
                       "model = get_peft_model(model, LoraConfig(r=4, target_modules=\n"
                       "    TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING['qwen2']))\n" +
                       trainer);
  CHECK(value_at(own.read("g.py"), "strategy.lora.modules") == "[q_proj, v_proj]");
}

TEST_CASE("parts that are taken out of the training are named", "[scenarios][sources]") {
  const Repository own;
  const auto frozen = [&](const std::string& lines) {
    own.with("a.py", model + lines + trainer);
    const Translation read = own.read("a.py");
    return std::ranges::any_of(read.keys, [](const SourceKey& each) {
      return each.key == "frozen_parameters" && each.fate == KeyFate::unmodelled;
    });
  };
  CHECK(frozen("for p in model.parameters():\n    p.requires_grad = False\n"));
  CHECK(frozen("model.model.embed_tokens.requires_grad_(False)\n"));
  CHECK_FALSE(frozen("for p in ref_model.parameters():\n    p.requires_grad = False\n"));
  CHECK_FALSE(
      frozen("for name, p in model.named_parameters():\n    if 'vision' in name:\n"
             "        p.requires_grad = False\n"));
  CHECK_FALSE(
      frozen("for p in model.parameters():\n    p.requires_grad = False\n"
             "model = get_peft_model(model, LoraConfig(r=4))\n"));
}

TEST_CASE("matrices that a pattern says", "[scenarios][sources]") {
  const Repository own;
  const auto modules = [&](const std::string& pattern) {
    own.with("a.yml",
             "base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\nmicro_batch_size: 1\n"
             "adapter: lora\nlora_r: 8\nlora_target_modules: '" +
                 pattern + "'\n");
    const Translation read = own.read("a.yml");
    return value_at(read, "strategy.lora.targets") + " " + value_at(read, "strategy.lora.modules");
  };
  CHECK(modules("model.layers.[\\d]+.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj") == "linear ");
  CHECK(modules(".*\\.(q_proj|k_proj)$") == "attention [q_proj, k_proj]");
  CHECK(modules("^(?!.*vision).*(?:self_attn).*?(?:q_proj|up_proj).*") ==
        "linear [q_proj, up_proj]");
}

TEST_CASE("GPUs are those that the file of Accelerate says", "[scenarios][sources]") {
  const Repository own;
  own.with("a.py", model + trainer);
  own.with("zero2.yaml",
           "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\nnum_processes: 4\n"
           "num_machines: 1\n");
  own.with("a.slurm",
           "#SBATCH --nodes=1\n#SBATCH --gres=gpu:h100:4\n"
           "accelerate launch --config_file zero2.yaml a.py --gradient_accumulation_steps 3\n");
  const Translation read = own.read("a.slurm");
  CHECK(value_at(read, "cluster.node") == "h100-4");
  // What the script says is said, though the program has no line for it.
  const auto line =
      std::ranges::find(read.lines, "job.gradient_accumulation", &TranslatedLine::path);
  CHECK(line->key == "--gradient_accumulation_steps");
  CHECK(line->value == "3");
  own.with("b.slurm", "#SBATCH --partition=v100-32g\n#SBATCH --gres=gpu:2\ntorchrun a.py\n");
  CHECK(value_at(own.read("b.slurm"), "cluster.node").starts_with("v100"));
  CHECK(value_at(own.read("b.slurm"), "cluster.node").find("32") != std::string::npos);
  own.with("c.slurm", "#SBATCH --gres=gpu:10\ntorchrun --nproc_per_node=10 a.py\n");
  CHECK(value_at(own.read("c.slurm"), "cluster.nodes") == "2");
  CHECK(value_at(own.read("c.slurm"), "cluster.gpus_per_node") == "5");
}

TEST_CASE("scripts that start scripts", "[scenarios][sources]") {
  const Repository own;
  own.with("a.py", model + trainer);
  own.with("inner/train.sh", "torchrun --nproc_per_node=$1 ../a.py\n");
  own.with("a.slurm", "#SBATCH --nodes=2\nsrun bash inner/train.sh 4\n");
  CHECK(value_at(own.read("a.slurm"), "cluster.gpus_per_node") == "4");
  CHECK(value_at(own.read("a.slurm"), "cluster.nodes") == "2");
  own.with("wrap.sh", "python -u \"$@\"\n").with("b.sh", "srun -n 8 ./wrap.sh a.py --bf16\n");
  CHECK(value_at(own.read("b.sh"), "job.micro_batch") == "2");
  own.with("c.sh", "if [ -z \"$X\" ]; then sbatch c.sh; fi\npython a.py\n");
  CHECK(value_at(own.read("c.sh"), "job.micro_batch") == "2");
  own.with("tune.sh", "xtuner train own.py\n");
  CHECK_THAT(own.refusal("tune.sh"), Contains("tune.sh:1: the script starts xtuner"));
}

TEST_CASE("programs of Slurm, and trainers by any name", "[scenarios][sources]") {
  const Repository own;
  own.with("a.py", "pattern = r\"[\\\"']x\"\n" + model + trainer);
  own.with(
      "a.slurm",
      "#SBATCH --nodes=1\nif [ -z $SLURM_JOB_ID ]; then sbatch \"$0\"; exit; fi\npython a.py\n");
  CHECK(value_at(own.read("a.slurm"), "job.micro_batch") == "2");
  CHECK(value_at(own.read("a.slurm"), "cluster.gpus_per_node") == "1");
  own.with("h.py",
           "@hydra.main(config_path='conf', config_name='own')\ndef main(cfg):\n  " + model +
               "  args = TrainingArguments(per_device_train_batch_size=cfg.rows, bf16=True)\n"
               "  t = Trainer(model=model, args=args)\nmain()\n");
  own.with("h.sh", "torchrun --nproc_per_node=2 h.py --config-name=own.yaml rows=6 +x=y\n");
  CHECK(value_at(own.read("h.sh"), "job.micro_batch") == "6");
  own.with("d.py",
           "class Own:\n  def gradient_checkpointing_enable(self):\n"
           "    self.model.gradient_checkpointing_enable()\n" +
               model + "if args.again:\n  model.gradient_checkpointing_enable()\n" +
               "parser.add_argument('--again', action='store_true')\n" + trainer);
  CHECK(value_at(own.read("d.py"), "strategy.checkpointing") == "none");
  own.with("b.py", "class TrainerOfOurs(SFTTrainer):\n  pass\n" + model +
                       "t = TrainerOfOurs(model=model, args=SFTConfig(max_length=300))\n");
  CHECK(value_at(own.read("b.py"), "job.sequence") == "300");
  own.with("c.sh",
           "torchrun --nproc_per_node=8 pretrain_llama.py --num-layers 32 --hidden-size 4096 \\\n"
           " --num-attention-heads 32 --seq-length 2048 --micro-batch-size 1 --deepspeed \\\n"
           " --tensor-model-parallel-size 2 --checkpoint-activations --train-iters 5\n");
  const Translation megatron = own.read("c.sh");
  CHECK(value_at(megatron, "strategy.checkpointing") == "full");
  CHECK(std::ranges::any_of(megatron.keys, [](const SourceKey& each) {
    return each.key == "deepspeed" && each.fate == KeyFate::unmodelled;
  }));
}

TEST_CASE("models that stand in are of the kind that the file says", "[scenarios][sources]") {
  const Repository own;
  const std::string rows =
      "sequence_len: 512\nmicro_batch_size: 1\nnum_epochs: 1\nbase_model: own/Crane-7B\n";
  own.with("a.yml", rows + "model_type: LlamaForCausalLM\n");
  CHECK_THAT(value_at(own.read("a.yml"), "model"), Contains("llama"));
  own.with("b.yml", "sequence_len: 512\nmicro_batch_size: 1\nbase_model: own/Crane-VL-A3B\n");
  CHECK_THAT(value_at(own.read("b.yml"), "model"), Contains("a3b"));
  // A model that sees stands in for none that does not, however near its size is.
  own.with("d.yml", "sequence_len: 512\nmicro_batch_size: 1\nbase_model: own/crane-2.1b\n");
  CHECK(value_at(own.read("d.yml"), "model").find("vl") == std::string::npos);
  // A folder that is called as a model of the catalogue is none of it.
  own.with("qwen2.5-7b/notes.txt", "x").with("c.yml", rows + "x: 1\n");
}

TEST_CASE("AutoTrain's command line", "[scenarios][sources]") {
  const Repository own;
  own.with("a.sh",
           "autotrain llm --train --model Qwen/Qwen2.5-7B --peft --batch-size 3 --lora-r 24 \\\n"
           "  --trainer orpo --block-size 512\n");
  const Translation read = own.read("a.sh");
  CHECK(value_at(read, "job.method") == "dpo");
  CHECK(value_at(read, "job.reference_model") == "false");
  CHECK(value_at(read, "job.micro_batch") == "3");
  CHECK(value_at(read, "strategy.lora.rank") == "24");
  CHECK(value_at(read, "strategy.lora.quantised") == "nf4_single");
  own.with(
      "b.yaml",
      "task: llm-sft\nbase_model: Qwen/Qwen2.5-7B\nparams: {peft: true, quantization: int8}\n");
  CHECK(value_at(own.read("b.yaml"), "strategy.lora.quantised") == "int8");
  own.with("c.yaml", "task: llm-sft\nbase_model: Qwen/Qwen2.5-7B\nparams: {batch_size: 2}\n");
  CHECK(value_at(own.read("c.yaml"), "strategy.lora.rank").empty());
  own.with("b.sh", "autotrain --config b.yaml\n");
  CHECK(value_at(own.read("b.sh"), "strategy.lora.quantised") == "int8");
}

}  // namespace stepsim
