// This reads families of config.json by their rules in architectures.yaml.
#include <map>

#include "sim/base/letters.hpp"
#include "sim/base/words.hpp"
#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

// A rule says what one fact of a model is, or which key of its file says it.
struct FamilyRule {
  std::string said{};          // true, false, a number, a word, or the key of a flag
  std::string key{}, older{};  // the second where the file has that
  std::string number{};        // the key of a number that is above zero where the flag is on
  std::string usual{}, then{};
  std::int64_t most = 0;  // 0: as far as any model may go
};
struct FamilyRules {
  std::map<std::string, FamilyRule, std::less<>> facts;
  std::map<std::string, std::string> refused;  // keys of the file, and why
};
struct KnownFamilies {
  std::vector<Architecture> architectures;
  std::map<std::string, FamilyRules, std::less<>> families;
};

FamilyRule read_family_rule(const Table& family, const std::string& fact) {
  if (!family.is_mapping(fact)) return {.said = family.text(fact)};
  const Table rule = family.table(fact);
  return {.said = "",
          .key = rule.text_or("key", ""),
          .older = rule.text_or("older", ""),
          .number = rule.text_or("number", ""),
          .usual = rule.text_or("or", ""),
          .then = rule.text_or("then", ""),
          .most = rule.integer_or("most", 0, 1, hf_limits.tokens)};
}

KnownFamilies read_known_families() {
  constexpr const char* file = "architectures.yaml";
  const Document document = parse_document(model_asset(file), file);
  const Table root = document.root(), list = root.table("architectures"),
              families = root.table("families");
  KnownFamilies known;
  for (const std::string& name : list.keys()) {
    const Table each = list.table(name);
    known.architectures.push_back(
        {name, each.text("about"), each.text("as"), each.flag_or("tower", false)});
  }
  for (const std::string& name : families.keys()) {
    const Table each = families.table(name);
    const std::string like = each.text_or("like", "");
    FamilyRules rules = like.empty() ? FamilyRules{} : known.families.at(like);
    for (const std::string& fact : each.keys()) {
      if (fact == "refuses")
        for (const Table why = each.table(fact); const std::string& key : why.keys())
          rules.refused[key] = why.text(key);
      else if (fact != "like")
        rules.facts[fact] = read_family_rule(each, fact);
    }
    known.families[name] = std::move(rules);
  }
  document.finish();
  return known;
}

const KnownFamilies& known_families() {
  static const KnownFamilies known = read_known_families();  // of what is compiled in
  return known;
}

std::int64_t whole_in(const std::string& text) {
  return number_from<std::int64_t>(text).value_or(0);
}

class FamilyReader {
 public:
  FamilyReader(const Table& root, const FamilyRules& rules) : root_(root), rules_(rules) {}

  Model read() const {
    Model model = read_decoder(root_, decoder_keys());
    read_flags(model);
    if (const auto norms = word<Attention::QkNorm>("qk_norm", qk_norm_words))
      model.attention.qk_norm = *norms;
    if (const auto norms = word<Norms>("norms", norms_words)) model.norms = *norms;
    if (const auto place = word<Positions>("place", positions_names)) model.positions = *place;
    Attention& a = model.attention;
    if (!root_.has("head_dim")) a.head_dim = number("usual_head", a.head_dim, 1, hf_limits.heads);
    a.rotary = number("rotary", a.rotary, 0, a.head_dim);
    if (const FamilyRule* share = rule("rotary_share"))
      read_rotary(root_, share->key, std::stod(share->usual), model);
    if (const FamilyRule* latent = rule("latent"))
      read_latent(root_, model, latent->said == "even" ? model.hidden / a.heads : 0);
    if (rule("experts") != nullptr) model.experts = experts();
    read_windows(model);
    for (const auto& [key, why] : rules_.refused)
      if (root_.has(key) && root_.one_line(key) != "false") root_.problem(key, why);
    return model;
  }

 private:
  static constexpr std::array<std::string_view, 3> qk_norm_words{"none", "per_head", "full_width"};
  static constexpr std::array<std::string_view, 4> norms_words{"before", "behind", "both", "once"};

  const FamilyRule* rule(std::string_view fact) const {
    const auto place = rules_.facts.find(fact);
    return place == rules_.facts.end() ? nullptr : &place->second;
  }
  // Returns the key that a rule names; "" without a rule.
  std::string_view key_of(std::string_view fact) const {
    const FamilyRule* found = rule(fact);
    return found == nullptr ? "" : std::string_view(found->said);
  }
  std::string_view key_in(const FamilyRule& rule) const {
    return !rule.older.empty() && root_.has(rule.older) ? rule.older : rule.key;
  }
  bool is_on(const FamilyRule& rule) const {
    if (!rule.number.empty())
      return !root_.has(rule.number) ||
             root_.number_or(rule.number, std::stod(rule.usual), 0, 1e6) > 0;
    if (rule.said.empty()) return root_.flag_or(rule.key, rule.usual == "true");
    if (rule.said == "true" || rule.said == "false") return rule.said == "true";
    return root_.flag_or(rule.said, false);
  }
  bool is_on(std::string_view fact, bool usual) const {
    const FamilyRule* found = rule(fact);
    return found == nullptr ? usual : is_on(*found);
  }
  std::int64_t number(std::string_view fact, std::int64_t usual, std::int64_t low,
                      std::int64_t high) const {
    const FamilyRule* found = rule(fact);
    if (found == nullptr) return usual;
    if (!found->said.empty()) return whole_in(found->said);
    return root_.integer_or(key_in(*found), whole_in(found->usual), low,
                            found->most > 0 ? found->most : high);
  }
  template <class Enum, std::size_t N>
  std::optional<Enum> word(std::string_view fact,
                           const std::array<std::string_view, N>& words) const {
    const FamilyRule* found = rule(fact);
    if (found == nullptr || (!found->then.empty() && !is_on(*found))) return std::nullopt;
    return member_of<Enum>(words, found->then.empty() ? found->said : found->then);
  }

  DecoderKeys decoder_keys() const {
    DecoderKeys keys;
    const auto put = [&](std::string_view fact, std::string_view* key, std::int64_t& usual) {
      const FamilyRule* found = rule(fact);
      if (found == nullptr) return;
      if (key != nullptr && !found->key.empty()) *key = key_in(*found);
      if (!found->said.empty()) usual = whole_in(found->said);
    };
    put("layers", &keys.depth, keys.layers);
    put("hidden", nullptr, keys.hidden);
    put("width", &keys.width, keys.feed_forward);
    put("words", &keys.words, keys.vocabulary);
    put("positions", &keys.reach, keys.positions);
    put("heads", nullptr, keys.heads.heads);
    put("kv_heads", nullptr, keys.heads.kv_heads);
    put("head_width", nullptr, keys.heads.width);
    keys.tied = is_on("tied", false);
    return keys;
  }

  void read_flags(Model& model) const {
    Attention& a = model.attention;
    FeedForward& f = model.feed_forward;
    if (const FamilyRule* bias = rule("bias")) set_bias(model, is_on(*bias));
    for (const auto& [fact, flag] : std::initializer_list<std::pair<std::string_view, bool*>>{
             {"qkv_bias", &a.qkv_bias},
             {"output_bias", &a.output_bias},
             {"fused_qkv", &a.fused_qkv},
             {"sinks", &a.sinks},
             {"gated", &f.gated},
             {"up_bias", &f.bias},
             {"fused_gate_up", &f.fused_gate_up},
             {"norm_bias", &model.norm_bias},
             {"norm_weights", &model.norm_weights},
             {"norms_embedding", &model.norms_embedding},
             {"head_bias", &model.head_bias},
             {"caps_logits", &model.caps_logits}})
      *flag = is_on(fact, *flag);
  }

  Experts experts() const {
    const std::string_view per_token = key_of("per_token");
    ExpertKeys keys{key_of("experts"), key_of("expert_width"), key_of("shared_experts"),
                    key_of("shared_width")};
    if (!per_token.empty()) keys.per_token = per_token;
    Experts experts = read_experts(root_, keys);
    experts.every = number("every", 1, 1, hf_limits.layers);
    experts.first_dense = number("first_dense", 0, 0, hf_limits.layers);
    if (const std::string_view key = key_of("dense_layers"); !key.empty())
      experts.first_dense = first_layers(key);
    experts.selection_bias = is_on("selection_bias", false);
    experts.shared_gate = is_on("shared_gate", false) && experts.shared_width > 0;
    experts.bias = is_on("expert_bias", false);
    experts.fused = is_on("fused_experts", false);
    experts.masked = is_on("masked", false);
    return experts;
  }

  // Returns how many layers a list has, which are the first ones.
  std::int64_t first_layers(std::string_view key) const {
    const std::vector<std::int64_t> listed = integers(root_, key);
    for (std::size_t i = 0; i < listed.size(); ++i)
      if (listed[i] != static_cast<std::int64_t>(i)) {
        root_.problem(key, "only the first layers may be without experts: 0, 1, ...");
        break;
      }
    return static_cast<std::int64_t>(listed.size());
  }

  void read_windows(Model& model) const {
    model.attention.full_every = number("full_every", 0, 1, hf_limits.layers);
    if (key_of("window") == "qwen") return read_qwen_window(root_, model);
    if (rule("window") == nullptr) return;
    model.attention.sliding_window = number("window", 0, 0, hf_limits.tokens);
    read_layer_types(root_, model);
  }

  const Table& root_;
  const FamilyRules& rules_;
};

}  // namespace

std::span<const Architecture> architectures() {
  return known_families().architectures;
}

std::optional<Model> read_family(const Table& root, std::string_view family) {
  const auto place = known_families().families.find(family);
  if (place == known_families().families.end()) return std::nullopt;
  return FamilyReader(root, place->second).read();
}

}  // namespace stepsim
