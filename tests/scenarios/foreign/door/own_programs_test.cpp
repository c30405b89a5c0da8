// Programs of people's own that decide on their way what they train, and the scripts around them.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/table/named_machines.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/repository.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

const std::string loaded = "AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B'";

std::string lora_of(const Translation& read, std::string_view key) {
  return value_at(read, fmt::format("strategy.lora.{}", key));
}

}  // namespace

TEST_CASE("what stands behind a return runs where its condition does not hold",
          "[scenarios][sources]") {
  const Repository own;
  const auto program = [&](const std::string& bits) {
    own.with("quantise.py",
             "def make(load_in_4bit, kind):\n    if not load_in_4bit:\n        return None\n"
             "    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=kind)\n");
    own.with("train.py",
             "from quantise import make\n@dataclass\nclass Own:\n    use_4bit: bool = " + bits +
                 "\nown = HfArgumentParser(Own).parse_args_into_dataclasses()[0]\n"
                 "more = {'trust_remote_code': True}\nquantised = make(own.use_4bit, 'nf4')\n"
                 "if quantised is not None:\n    more['quantization_config'] = quantised\n"
                 "else:\n    more['torch_dtype'] = torch.bfloat16\nmodel = " +
                 loaded +
                 ", **more)\nm = get_peft_model(model, LoraConfig(r=8))\n"
                 "t = Trainer(model=m, args=TrainingArguments(bf16=True))\n");
    return own.read("train.py");
  };
  CHECK(lora_of(program("True"), "quantised") == "nf4_single");
  CHECK(lora_of(program("False"), "quantised").empty());
  CHECK(lora_of(program("False"), "frozen").empty());  // settings that are set one by one
}

TEST_CASE("beside 4 bits the other weights are in 32 bits where the program casts them",
          "[scenarios][sources]") {
  const Repository own;
  const auto frozen = [&](const std::string& middle, const std::string& end) {
    own.with("q.py", "model = " + loaded +
                         ", torch_dtype=torch.bfloat16, quantization_config=BitsAndBytesConfig("
                         "load_in_4bit=True))\n" +
                         middle + end);
    return [&own](const std::string& release) {
      return lora_of(own.read("q.py", {{"releases.trl", release}}), "frozen");
    };
  };
  const std::string casts = "model = prepare_model_for_kbit_training(model)\n",
                    adapts = "model = get_peft_model(model, LoraConfig(r=8))\n",
                    plain = "t = Trainer(model=model, args=TrainingArguments(bf16=True))\n";
  CHECK(frozen(casts + adapts, plain)("1.0") == "fp32");
  CHECK(frozen(adapts, plain)("1.0").empty());
  const std::string sft = "t = SFTTrainer(model=model, args=SFTConfig(bf16=True), ",
                    half = "t = SFTTrainer(model=model, args=SFTConfig(fp16=True), ",
                    dpo = "t = DPOTrainer(model=model, args=DPOConfig(fp16=True), ",
                    of_trainer = "peft_config=LoraConfig(r=8))\n";
  CHECK(frozen(casts, sft + of_trainer)("0.26") == "fp32");
  CHECK(frozen(casts, sft + of_trainer)("0.25").empty());  // cast back
  CHECK(frozen("", half + of_trainer)("0.25") == "fp32");  // by the trainer itself
  CHECK(frozen("", half + of_trainer)("0.26").empty());
  CHECK(frozen("", dpo + of_trainer)("0.28") == "fp32");
  CHECK(frozen("", dpo + of_trainer)("0.29").empty());
  CHECK(frozen(adapts, half + ")\n")("0.25").empty());  // adapters were there before
}

TEST_CASE("products are in fp16 where the program or the card has no bf16",
          "[scenarios][sources]") {
  const Repository own;
  own.with("a.py",
           "model, t = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-7B', load_in_4bit=True)\n"
           "model = FastLanguageModel.get_peft_model(model, r=8)\n"
           "t = SFTTrainer(model=model, args=TrainingArguments("
           "fp16=not is_bfloat16_supported(), bf16=is_bfloat16_supported()))\n");
  const auto precision = [&](const std::string& name, const std::string& node) {
    return value_at(own.read(name, {{"cluster", "{node: " + node + "}"}}), "strategy.precision");
  };
  CHECK(precision("a.py", "t4-1") == "fp16");
  CHECK(precision("a.py", "v100-1") == "fp16");
  CHECK(precision("a.py", "l4-1").empty());
  const std::string middle = ")\nmodel = " + loaded +
                             ", quantization_config=BitsAndBytesConfig(load_in_4bit=True, "
                             "bnb_4bit_compute_dtype=torch.";
  const std::string end =
      "))\nmodel = get_peft_model(model, LoraConfig(r=8))\n"
      "t = SFTTrainer(model=model, args=SFTConfig(max_steps=3))\n";
  own.with("b.py", "print(1" + middle + "float16" + end);
  own.with("c.py", "print(1" + middle + "bfloat16" + end);
  CHECK(precision("b.py", "t4-1") == "fp16");
  CHECK(precision("c.py", "l4-1").empty());
}

TEST_CASE("a program with two trainings runs the one that it is told", "[scenarios][sources]") {
  const Repository own;
  own.with("pairs.py",
           "from trl import DPOTrainer, DPOConfig\nclass Pairs:\n    def run(self):\n"
           "        model = " +
               loaded +
               ")\n        settings = DPOConfig(max_length=512, per_device_train_batch_size=2)\n"
               "        DPOTrainer(model=model, args=settings).train()\n");
  own.with("rows.py",
           "from transformers import Trainer, TrainingArguments\nclass Rows:\n    def run(self):\n"
           "        model = " +
               loaded +
               ")\n        settings = TrainingArguments(per_device_train_batch_size=4)\n"
               "        Trainer(model=model, args=settings).train()\n"
               "def main():\n    Rows().run()\n");
  own.with("full.py",
           "from rows import Rows\nfrom pairs import Pairs\ndef main():\n"
           "    parser.add_argument('--pairs-only', action='store_true')\n"
           "    args = parser.parse_args()\n    if getattr(args, 'pairs_only', False):\n"
           "        Pairs().run()\n        return\n    Both().run()\n"
           "class Both:\n    def run(self):\n        self.rows()\n    def rows(self):\n"
           "        Rows().run()\nmain()\n");
  own.with("a.sh", "python full.py --pairs-only\n").with("b.sh", "python full.py\n");
  const Translation pairs = own.read("a.sh"), rows = own.read("b.sh");
  CHECK(value_at(pairs, "job.method") == "dpo");
  CHECK(value_at(pairs, "job.micro_batch") == "2");
  CHECK(value_at(pairs, "job.sequence") == "512");
  CHECK(value_at(rows, "job.method") == "sft");
  CHECK(value_at(rows, "job.micro_batch") == "4");
  CHECK(value_at(rows, "job.sequence") == "1024");  // not that of the pairs
}

TEST_CASE("classes that are called as those of libraries", "[scenarios][sources]") {
  const Repository own;
  own.with("loop.py",
           "@dataclass\nclass SFTConfig:\n    eval_every: int = 5\n    batch_size: int = 16\n"
           "class SFTTrainer:\n    def train(self):\n        loss.backward()\nmodel = " +
               loaded +
               ")\noptimizer = torch.optim.AdamW(model.parameters())\n"
               "parser.add_argument('--batch_size', default=16)\n"
               "SFTTrainer(model, SFTConfig(eval_every=3, batch_size=args.batch_size)).train()\n");
  const Translation loop = own.read("loop.py");
  CHECK(value_at(loop, "stack") == "hf-loop");
  CHECK(value_at(loop, "job.micro_batch") == "16");
  // A name that a module has and the loop does not look at.
  own.with("settings.py", "@dataclass\nclass Other:\n    gradient_accumulation_steps: int = 8\n");
  own.with("bare.py", "from settings import Other\nmodel = " + loaded +
                          ")\nrows = DataLoader(data, batch_size=4)\n"
                          "optimizer = AdamW(model.parameters())\nloss.backward()\n");
  CHECK(value_at(own.read("bare.py"), "job.gradient_accumulation") == "1");
  own.with("orpo.py",
           "from unsloth import FastModel, PatchDPOTrainer\nPatchDPOTrainer()\n"
           "class Masked(ORPOTrainer):\n    pass\n"
           "model, t = FastModel.from_pretrained('Qwen/Qwen2.5-7B')\n"
           "trainer = Masked(model=model, args=ORPOConfig(beta=0.1, bf16=True))\n");
  CHECK(value_at(own.read("orpo.py"), "job.method") == "dpo");
  CHECK(value_at(own.read("orpo.py"), "job.reference_model") == "false");
}

TEST_CASE("a stack is called by who runs the training", "[scenarios][sources]") {
  const Repository own;
  const std::string model = "model = " + loaded + ")\n";
  own.with("a.py", model + "t = Trainer(model=model, args=TrainingArguments(bf16=True))\n");
  own.with("b.py", model + "t = SFTTrainer(model=model, args=SFTConfig(bf16=True))\n");
  own.with("c.py",
           model + "t = Trainer(model=model, args=TrainingArguments(use_liger_kernel=True))\n");
  own.with("d.py",
           "model = SentenceTransformer('BAAI/bge-base-en-v1.5')\n"
           "rows = DataLoader(examples, shuffle=True, batch_size=24)\n"
           "loss = losses.MultipleNegativesRankingLoss(model)\n"
           "model.fit(train_objectives=[(rows, loss)], epochs=2, use_amp=True)\n");
  CHECK(value_at(own.read("a.py"), "stack") == "hf-trainer");
  CHECK(value_at(own.read("b.py"), "stack") == "trl");
  CHECK(value_at(own.read("c.py"), "stack") == "hf-trainer-liger");
  const Translation texts = own.read("d.py");
  CHECK(value_at(texts, "stack") == "sentence-transformers");
  CHECK(value_at(texts, "job.method") == "embed");
  CHECK(value_at(texts, "job.micro_batch") == "24");
  CHECK(value_at(texts, "strategy.precision") == "fp16");
  CHECK(value_at(own.read("d.py", {{"releases.sentence-transformers", "2.7"}}),
                 "strategy.optimizer_kernels") == "foreach");
  CHECK(value_at(texts, "strategy.optimizer_kernels").empty());
}

TEST_CASE("values that stand a step away", "[scenarios][sources]") {
  const Repository own;
  own.with("conf/run.yaml", "rows: 128\n");
  own.with("a.py",
           "class Settings:\n    labels = ['a', 'b', 'c']\n    @property\n    def count(self):\n"
           "        return len(self.labels)\nsettings = Settings()\n"
           "model = AutoModelForSequenceClassification.from_pretrained('bert-base-uncased', "
           "num_labels=settings.count)\n"
           "t = Trainer(model=model, args=TrainingArguments(bf16=True))\n");
  CHECK(value_at(own.read("a.py"), "job.labels") == "3");
  own.with("b.py",
           "@hydra.main(config_path='conf', config_name='run')\ndef main(cfg):\n    work(1, cfg)\n"
           "def work(world, cfg):\n    model = " +
               loaded +
               ")\n    more = {'batch_size': cfg.rows // world, 'pin_memory': True}\n"
               "    rows = DataLoader(data, **more)\n    optimizer = AdamW(model.parameters())\n"
               "    loss.backward()\nmain()\n");
  CHECK(value_at(own.read("b.py"), "job.micro_batch") == "128");
  // The inner function has the outer one's parameter; calls that nothing comes to say nothing.
  own.with("c.py",
           "def prepare(texts, max_length=99):\n    def cut(text):\n"
           "        return tokenizer(text, truncation=True, max_length=max_length)\n"
           "    return texts.map(cut)\ndef unused():\n    prepare(texts, max_length=64)\nmodel = " +
               loaded +
               ")\nprepare(texts, max_length=384)\n"
               "t = Trainer(model=model, args=TrainingArguments(bf16=True))\n");
  CHECK(value_at(own.read("c.py"), "job.sequence") == "384");
  own.with("d.py", "from elsewhere import load_rows\nmodel = " + loaded +
                       ")\nrows = load_rows(tokenizer, max_length=2048)\n"
                       "text = model.generate(x, max_length=77)\n"
                       "t = Trainer(model=model, args=TrainingArguments(bf16=True))\n");
  CHECK(value_at(own.read("d.py"), "job.sequence") == "2048");
  // Settings that are set one by one, beside a function that calls itself on four ways.
  own.with(
      "e.py",
      "def safe(x):\n    if isinstance(x, dict):\n        return {k: safe(v) for k, v in x}\n"
      "    if isinstance(x, list):\n        return [safe(v) for v in x]\n"
      "    if isinstance(x, tuple):\n        return [safe(v) for v in x]\n    return x\n"
      "def main():\n    model = " +
          loaded +
          ")\n    rows = safe(load())\n    more = {'model': model, 'args': SFTConfig(bf16=True)}\n"
          "    if 'max_seq_length' in inspect.signature(SFTTrainer).parameters:\n"
          "        more['max_seq_length'] = 777\n    t = SFTTrainer(**more)\nmain()\n");
  CHECK(value_at(own.read("e.py"), "job.sequence") == "777");
}

TEST_CASE("arguments that a script does not know are asked for", "[scenarios][sources]") {
  const Repository own;
  own.with("train.py",
           "parser.add_argument('--rows', type=int, default=1)\n"
           "parser.add_argument('--half', type=str, default='false')\n"
           "args.half = args.half.lower() == 'true'\nonly = resumes()\nmodel = " +
               loaded +
               ")\nt = Trainer(model=model, args=TrainingArguments("
               "per_device_train_batch_size=args.rows, bf16=args.half, save_only_model=only))\n");
  own.with("a.sh", "python train.py --rows $2 --half true\n");
  own.with("b.sh", "python train.py --rows 6 --half true\n");
  CHECK_THAT(own.refusal("a.sh"), Contains("per_device_train_batch_size: depends on $2"));
  CHECK(value_at(own.read("b.sh"), "job.micro_batch") == "6");
  own.with("c.sh", "python train.py --rows 6 --half false\n");
  CHECK(value_at(own.read("b.sh"), "strategy.precision").empty());
  CHECK(value_at(own.read("c.sh"), "strategy.precision") == "fp32");
}

TEST_CASE("a script's folders, files and launches", "[scenarios][sources]") {
  const Repository own;
  own.with("LLaMA-Factory/own/sft.yaml",
           "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
           "per_device_train_batch_size: 3\ntemplate: qwen\n");
  own.with("a.sh",
           "HERE=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")/LLaMA-Factory\" && pwd)\"\n"
           "cd \"$HERE\"\nllamafactory-cli train own/sft.yaml\n");
  CHECK(value_at(own.read("a.sh"), "job.micro_batch") == "3");
  const std::string trl =
      "trl sft --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2\n";
  own.with("own.py",
           "class Odd:\n    pass\nclass OddTrainer(Odd):\n    pass\nt = OddTrainer(model)\n");
  own.with("b.sh", trl + "python own.py\n").with("c.sh", "python own.py\n");
  const Translation beside = own.read("b.sh");
  CHECK(value_at(beside, "job.micro_batch") == "2");
  CHECK(std::ranges::any_of(beside.notes, [](const std::string& note) {
    return note.find("OddTrainer is no trainer") != std::string::npos;
  }));
  CHECK_THAT(own.refusal("c.sh"), Contains("OddTrainer is no trainer"));
  own.with("rows.py", "model = " + loaded +
                          ")\nt = Trainer(model=model, args=TrainingArguments(bf16=True))\n");
  own.with("d.sh",
           "cat > /tmp/own.yaml << EOF\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
           "  zero_stage: 2\nnum_processes: 6\nEOF\n"
           "accelerate launch --config_file /tmp/own.yaml rows.py\n");
  CHECK(value_at(own.read("d.sh"), "strategy.zero") == "2");
  CHECK(value_at(own.read("d.sh"), "cluster.gpus_per_node") == "6");
  own.with("e.sh",
           "python -m own_agent.main algorithm.adv_estimator=grpo data.train_batch_size=64 "
           "actor_rollout_ref.actor.ppo_mini_batch_size=64 "
           "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.rollout.n=5\n");
  CHECK(value_at(own.read("e.sh"), "job.method") == "grpo");
  CHECK(std::ranges::any_of(own.read("e.sh").notes, [](const std::string& note) {
    return note.find("own_agent.main is taken for a form of verl") != std::string::npos;
  }));
  own.with("f.sh",
           "llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-7B --stage sft "
           "--finetuning_type full --max_source_length 1024 --max_target_length 300\n");
  CHECK(value_at(own.read("f.sh"), "job.sequence") == "1324");
  own.with("g.sh",
           "torchrun --nproc_per_node=2 elsewhere_lora.py --model_name_or_path Qwen/Qwen2.5-7B "
           "--per_device_train_batch_size 2 --output_dir o\n");
  CHECK(value_at(own.read("g.sh"), "strategy.lora.rank") == "16");
  own.with("block.yaml",
           "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
           "template: qwen\ndeepspeed:\n  zero_optimization:\n    stage: 2\n"
           "    offload_optimizer:\n      device: cpu\n");
  CHECK(value_at(own.read("block.yaml"), "strategy.zero") == "2");
  CHECK(value_at(own.read("block.yaml"), "strategy.offload.optimizer") == "cpu");
}

TEST_CASE("names from elsewhere, and arguments out of files", "[scenarios][sources]") {
  const Repository own;
  const std::string train = "model = " + loaded + ")\nt = SFTTrainer(model, args)\n";
  own.with("a.py", "from coati.trainer import SFTTrainer\n" + train);
  own.with("b.py", "from trl import SFTTrainer\n" + train);
  CHECK_THAT(own.refusal("a.py"), Contains("SFTTrainer is no trainer of transformers or TRL"));
  CHECK(value_at(own.read("b.py"), "stack") == "trl");
  own.with(
      "c.py",
      "from transformers import Seq2SeqTrainer as Base\nclass Seq2SeqTrainer(Base):\n    pass\n"
      "model = " +
          loaded + ")\nt = Seq2SeqTrainer(model=model, args=Seq2SeqTrainingArguments())\n");
  CHECK(value_at(own.read("c.py"), "stack") == "hf-trainer");
  own.with("own/args.json",
           "{\"model_name_or_path\": \"Qwen/Qwen2.5-7B\", \"per_device_train_batch_size\": 6, "
           "\"lora_rank\": 64, \"quant_kind\": \"nf4\"}");
  own.with(
      "d.py",
      "@dataclass\nclass Settings(TrainingArguments):\n    quant_type: str = 'nf4'\n"
      "parser.add_argument('--file', default='own/args.json')\nargs = parser.parse_args()\n"
      "args, settings = HfArgumentParser((Own, Settings)).parse_json_file(json_file=args.file)\n"
      "model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)\n"
      "model = get_peft_model(model, LoraConfig(r=args.lora_rank))\n"
      "t = Trainer(model=model, args=settings)\n");
  const Translation read = own.read("d.py");
  CHECK(value_at(read, "job.micro_batch") == "6");
  CHECK(value_at(read, "strategy.lora.rank") == "64");
}

TEST_CASE("cards that differ in links alone are a node of their own", "[scenarios][sources]") {
  CHECK(machine_called(data, "A800-80G", 4)->node == "a800-8");
  CHECK(machine_called(data, "H800", 8)->node == "h800-8");
  CHECK(machine_called(data, "A100-80G", 8)->node == "a100-8");
  const Repository own;
  own.with("sft_mi350x.yaml", "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: o\n");
  const Translation read = own.read("sft_mi350x.yaml");
  CHECK(std::ranges::any_of(read.assumptions, [](const Assumption& each) {
    return each.what == "machine" && each.taken.ends_with("in place of mi350x");
  }));
  own.with("t.py", "model = " + loaded + ")\nt = Trainer(model=model, args=TrainingArguments())\n");
  CHECK(value_at(own.read("t.py"), "cluster.gpus_per_node") == "1");
  // Nobody asks for several nodes for one process.
  CHECK(
      value_at(own.read("t.py", {{"cluster", "{node: h100-8, nodes: 4}"}}), "cluster.gpus_per_node")
          .empty());
}

TEST_CASE("images that a notebook keeps are no words of it", "[scenarios][sources]") {
  const Repository own;
  const std::string pixels(3000, 'A');
  own.with("a.ipynb",
           "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"x = 1\\n\"], \"outputs\": [\n"
           "{\"data\": {\"image/png\": \"" +
               pixels + " sd3 " + pixels + "\"}}]}], \"metadata\": {}}\n");
  CHECK_THAT(own.refusal("a.ipynb"), Contains("is a Jupyter notebook"));
}

TEST_CASE("a notebook or a program tells its release", "[scenarios][sources][releases]") {
  const Repository own;
  const std::string bits = "model = " + loaded +
                           ", quantization_config=BitsAndBytesConfig(load_in_4bit=True))\n",
                    trains = "t = SFTTrainer(model=model, peft_config=LoraConfig(r=8), ",
                    end = trains + "args=SFTConfig(bf16=True))\n";
  const auto with = [&](const std::string& release) {
    own.with("a.py", "os.system('pip install trl==" + release + "')\n" + bits + end);
    return own.read("a.py");
  };
  CHECK(value_at(with("0.12.1"), "releases.trl") == "0.12.1");
  // Before 0.7.3 the trainer had it on beside few bits, whatever its settings were.
  CHECK(value_at(with("0.4.7"), "strategy.checkpointing") == "full");
  CHECK(value_at(with("0.7.3"), "strategy.checkpointing") == "none");
  // A tokenizer that is handed under its old name is of a release before 0.16.
  own.with("d.py", bits + trains + "tokenizer=tok, args=SFTConfig(bf16=True))\n");
  CHECK(value_at(own.read("d.py"), "releases.trl") == "0.15.2");
  own.with("e.py", bits + trains + "processing_class=tok, args=SFTConfig(bf16=True))\n");
  CHECK(value_at(own.read("e.py"), "releases.trl").empty());
}

TEST_CASE("Unsloth's defaults: 4 bits, and an engine that shares the GPU", "[scenarios][sources]") {
  const Repository own;
  const auto program = [&](const std::string& more) {
    own.with("a.py", "m, t = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-7B'" + more +
                         ")\nm = FastLanguageModel.get_peft_model(m, r=16)\n"
                         "t = SFTTrainer(model=m, args=SFTConfig(bf16=True))\n");
    return lora_of(own.read("a.py"), "quantised");
  };
  CHECK(program("") == "nf4");
  CHECK(program(", load_in_4bit=False").empty());
  CHECK(program(", load_in_16bit=True").empty());
  own.with("g.py",
           "m, t = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-1.5B', fast_inference=True)\n"
           "m = FastLanguageModel.get_peft_model(m, r=16)\n"
           "t = GRPOTrainer(model=m, args=GRPOConfig(use_vllm=True, num_generations=4,\n"
           "  max_prompt_length=256, max_completion_length=256))\n");
  const Translation grpo = own.read("g.py", {{"releases.trl", "0.19.1"}});
  CHECK(value_at(grpo, "job.layout") == "colocated");
  CHECK(value_at(grpo, "cluster.gpus_per_node") == "1");
}

TEST_CASE("loops shard as they load, and count the GPUs that they ask for",
          "[scenarios][sources]") {
  const Repository own;
  const auto loop = [](const std::string& type, const std::string& wrap) {
    return "model = " + loaded + ", torch_dtype=torch." + type + ")\n" + wrap +
           "loader = DataLoader(data, batch_size=2)\nopt = torch.optim.AdamW(model.parameters())\n"
           "for batch in loader:\n    loss = model(**batch).loss / acc_steps\n"
           "    loss.backward()\n";
  };
  const std::string wrap =
      "policy = MixedPrecision(param_dtype=torch.bfloat16)\nmodel = torch.compile(model)\n"
      "model = FSDP(model, mixed_precision=policy)\nacc_steps = 4\n";
  own.with("a.py", loop("bfloat16", wrap));
  const Translation half = own.read("a.py");
  CHECK(value_at(half, "strategy.zero") == "fsdp");
  CHECK(value_at(half, "strategy.master_weights") == "false");
  CHECK(value_at(half, "strategy.compile") == "true");
  CHECK(value_at(half, "job.gradient_accumulation") == "4");
  CHECK(value_at(half, "cluster.gpus_per_node").empty());  // sharding is for several
  own.with("b.py", loop("float32", wrap));
  CHECK(value_at(own.read("b.py"), "strategy.master_weights") == "true");
  own.with("c.py", loop("float32",
                        "acc_steps = 1\nwith torch.autocast('cuda', dtype=torch.float16):\n"
                        "    pass\n"));
  CHECK(value_at(own.read("c.py"), "strategy.precision") == "fp16");
  own.with("d.py", loop("bfloat16", "acc_steps = 1\n") +
                       "t = TorchTrainer(train, scaling_config=ScalingConfig(num_workers=4))\n");
  CHECK(value_at(own.read("d.py"), "cluster.gpus_per_node") == "4");
  own.with("e.py", "pipe = PipelineModule(layers=layers, num_stages=2)\nmodel = " + loaded +
                       ")\nengine, _, _, _ = deepspeed.initialize(model=pipe)\n"
                       "engine.train_batch(data)\n");
  CHECK_THAT(own.refusal("e.py"), Contains("stages of DeepSpeed's pipeline"));
}

TEST_CASE("a step's own batches are what its function is told", "[scenarios][sources]") {
  const Repository own;
  own.with("steps.py",
           "def stage(model, data, batch_size, grad_accum):\n"
           "    loader = DataLoader(data, batch_size=batch_size)\n"
           "    opt = torch.optim.AdamW(model.parameters())\n    for batch in loader:\n"
           "        (model(**batch).loss / grad_accum).backward()\n"
           "if __name__ == '__main__':\n    stage(model, data, batch_size=9, grad_accum=9)\n");
  own.with("train.py", "from steps import stage\nmodel = " + loaded +
                           ", torch_dtype=torch.bfloat16)\n"
                           "stage(model, data, batch_size=2, grad_accum=8)\n");
  const Translation read = own.read("train.py");
  CHECK(value_at(read, "job.micro_batch") == "2");
  CHECK(value_at(read, "job.gradient_accumulation") == "8");
}

TEST_CASE("what a trainer is handed counts", "[scenarios][sources]") {
  const Repository own;
  const std::string model = "model = " + loaded + ", torch_dtype=torch.bfloat16)\n",
                    trains = "t = Trainer(model=model, args=TrainingArguments(bf16=True)";
  own.with("a.py", model + "opt = bnb.optim.Adam8bit(model.parameters(), lr=5e-5)\n" + trains +
                       ", optimizers=(opt, None))\n");
  CHECK(value_at(own.read("a.py"), "strategy.optimizer") == "adamw_8bit");
  own.with("b.py", model +
                       "def other():\n    return SFTTrainer(model=model, peft_config=config)\n"
                       "config = LoraConfig(r=4)\nmodel = PeftModelForCausalLM(model, config)\n" +
                       trains + ")\n");
  CHECK(lora_of(own.read("b.py"), "rank") == "4");
  // peft casts all of a model that is in 16 bits, whatever bits it has.
  own.with("c.py", model +
                       "model = prepare_model_for_kbit_training(model)\n"
                       "model = get_peft_model(model, LoraConfig(r=4))\n" +
                       trains + ")\n");
  CHECK(lora_of(own.read("c.py"), "frozen") == "fp32");
  own.with("d.py",
           "@dataclass\nclass Own:\n    matrices: Optional[List[str]] = None\n"
           "    def __post_init__(self):\n        if self.matrices is None:\n"
           "            self.matrices = ['q_proj']\n"
           "own = HfArgumentParser(Own).parse_args_into_dataclasses()[0]\n" +
               model +
               "model = get_peft_model(model, LoraConfig(r=4, target_modules=own.matrices))\n" +
               trains + ")\n");
  own.with("d.sh", "python d.py --matrices q_proj k_proj up_proj --bf16\n");
  CHECK(lora_of(own.read("d.sh"), "modules") == "[q_proj, k_proj, up_proj]");
  own.with("f.py", model +
                       "found = ['q_proj']\nif wide:\n    found.extend(['k_proj'])\n"
                       "model = get_peft_model(model, LoraConfig(r=4, target_modules=found))\n" +
                       trains + ")\n");
  CHECK_THAT(own.refusal("f.py"), Contains("depends on found, which line 4 fills"));
  own.with("e.py",
           "folder = snapshot_download('Qwen/Qwen2.5-1.5B', cache_dir='./')\n"
           "tok = AutoTokenizer.from_pretrained(folder, model_max_length=384)\n"
           "model = AutoModelForCausalLM.from_pretrained(folder)\n" +
               trains + ")\n");
  CHECK(value_at(own.read("e.py"), "model") == "\"qwen2.5-1.5b\"");
  CHECK(value_at(own.read("e.py"), "job.sequence") == "384");
}

TEST_CASE("containers are told their environment, and old files of Accelerate their backend",
          "[scenarios][sources]") {
  const Repository own;
  own.with("t.py",
           "model = AutoModelForCausalLM.from_pretrained(os.environ.get('MODEL_ID', "
           "'Qwen/Qwen2.5-7B'))\n"
           "t = Trainer(model=model, args=TrainingArguments(bf16=True))\n");
  own.with("a.sh",
           "ID=Qwen/Qwen2.5-0.5B\nALL=(\"SINGULARITYENV_MODEL_ID=$ID\")\n"
           "env \"${ALL[@]}\" singularity exec own.sif bash -lc \"python t.py\"\n");
  CHECK(value_at(own.read("a.sh"), "model") == "\"qwen2.5-0.5b\"");
  own.with("old.yaml",
           "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n"
           "dynamo_backend: 'NO'\nnum_machines: 1\nnum_processes: 2\n");
  own.with("b.sh", "accelerate launch --config_file old.yaml t.py\n");
  CHECK(value_at(own.read("b.sh"), "cluster.gpus_per_node") == "2");
  // What the trainer itself is told of DeepSpeed stands over the file of Accelerate.
  own.with("z.json", "{\"zero_optimization\": {\"stage\": 3}}");
  own.with("c.sh",
           "accelerate launch --config_file old.yaml run.py --model_name_or_path Qwen/Qwen2.5-7B "
           "--deepspeed z.json --per_device_train_batch_size 2 --bf16 True\n");
  CHECK(value_at(own.read("c.sh"), "strategy.deepspeed").find("z.json") != std::string::npos);
  CHECK(value_at(own.read("c.sh"), "cluster.gpus_per_node") == "2");
}

TEST_CASE("packages that are run are programs of their own", "[scenarios][sources]") {
  const Repository own;
  own.with("pack/tune/__main__.py", "from pack.tune.main import main\nmain()\n")
      .with("pack/tune/main.py", "def main():\n    model = " + loaded +
                                     ")\n    Trainer(model=model, "
                                     "args=TrainingArguments(bf16=True, max_steps=7))\n");
  own.with("a.sh", "deepspeed --num_gpus 4 --module pack.tune --per_device_train_batch_size 3\n");
  CHECK(value_at(own.read("a.sh"), "job.micro_batch") == "3");
  CHECK(value_at(own.read("a.sh"), "job.optimizer_steps") == "7");
  own.with("b.sh",
           "deepspeed --num_gpus 4 --module else.where --log_type wandb --zero_stage 3 "
           "--model_name_or_path Qwen/Qwen2.5-7B --bf16 True\n");
  CHECK(value_at(own.read("b.sh"), "strategy.zero") == "3");
}

TEST_CASE("what a notebook shows is no word of it", "[scenarios][sources]") {
  const Repository own;
  own.with("a.ipynb",
           "{\"cells\": [{\"cell_type\": \"code\",\n\"outputs\": [\n{\"text\": "
           "[\"StableDiffusion3Pipeline sd3\"]}],\n\"source\": [\"x = 1\"]}], "
           "\"metadata\": {}}\n");
  CHECK_THAT(own.refusal("a.ipynb"), Contains("is a Jupyter notebook"));
}

}  // namespace stepsim
