#include "models/informer/informer.h"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <ATen/autocast_mode.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/linear.h"
#include "models/random_context.h"
#include "models/segment.h"

namespace cohort::models {
namespace {

InformerSettings small() {
  InformerSettings s;
  s.seq_len = 32;
  s.label_len = 16;
  s.pred_len = 8;
  s.enc_in = s.dec_in = s.c_out = 3;
  s.d_model = 32;
  s.n_heads = 4;
  s.d_ff = 64;
  s.factor = 2;
  s.dropout = 0.1;
  return s;
}

struct Data {
  InformerInput input;
  at::Tensor target, ids;
};

Data data_for(const InformerSettings& s, std::int64_t batch) {
  torch::manual_seed(4);
  const std::int64_t rows = s.label_len + s.pred_len, marks = time_columns(s);
  const at::Tensor y = at::randn({batch, rows, s.dec_in});
  Data d;
  d.input = {at::randn({batch, s.seq_len, s.enc_in}), at::rand({batch, s.seq_len, marks}) - 0.5,
             informer_decoder_input(y, s), at::rand({batch, rows, marks}) - 0.5};
  d.target = y.narrow(1, s.label_len, s.pred_len);
  d.ids = at::randperm(1000, at::kLong).narrow(0, 0, batch);
  return d;
}

InformerInput part(const InformerInput& in, std::int64_t first, std::int64_t count) {
  return {in.x_enc.narrow(0, first, count), in.x_mark_enc.narrow(0, first, count), in.x_dec.narrow(0, first, count),
          in.x_mark_dec.narrow(0, first, count)};
}

RandomContext context_of(const at::Tensor& ids, std::uint64_t step = 3) {
  return {.seed = 11, .step = step, .sample_ids = ids};
}

TEST(Informer, LearnsOneBatchByHeart) {
  InformerSettings s = small();
  s.dropout = 0.0;
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(2e-3));
  double first = 0, last = 0;
  for (std::uint64_t step = 0; step < 150; ++step) {
    adam.zero_grad();
    const RandomContextGuard guard(context_of(d.ids, step));
    const at::Tensor loss = at::mse_loss(informer_forward(*model, d.input), d.target);
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.02 * first);
}

TEST(Informer, ASplitBatchMeetsTheSameMasksAndKeys) {
  InformerSettings s = small();
  s.distil = false;  // no batch norm: samples do not see each other
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 6);
  const auto forward = [&](const InformerInput& in, const at::Tensor& ids) {
    const RandomContextGuard guard(context_of(ids));
    return informer_forward(*model, in);
  };
  const at::Tensor whole = forward(d.input, d.ids);
  const at::Tensor halves = at::cat(
      {forward(part(d.input, 0, 2), d.ids.narrow(0, 0, 2)), forward(part(d.input, 2, 4), d.ids.narrow(0, 2, 4))});
  // Matrix products of other sizes round differently; another mask would change outputs by tenths.
  EXPECT_LE(relative_difference(halves, whole, 1.0), 1e-5);
  EXPECT_GE(relative_difference(forward(d.input, d.ids + 1), whole, 1.0), 1e-2) << "other samples, other masks";
}

TEST(Informer, AForwardPassIsAFunctionOfItsContext) {
  const InformerSettings s = small();
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  const auto forward = [&](std::uint64_t step) {
    const RandomContextGuard guard(context_of(d.ids, step));
    return informer_forward(*model, d.input);
  };
  const at::Tensor once = forward(3);
  EXPECT_FALSE(at::equal(forward(4), once));
  EXPECT_TRUE(at::equal(forward(3), once));
}

TEST(Informer, RecomputingLeavesRunningStatisticsAlone) {
  const InformerSettings s = small();
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  const auto forward = [&](bool recomputing) {
    RandomContext c = context_of(d.ids);
    c.recomputing = recomputing;
    const RandomContextGuard guard(c);
    return informer_forward(*model, d.input);
  };
  const at::Tensor first = forward(false);
  const at::Tensor mean = state_of(*model).at("encoder.conv_layers.0.norm.running_mean").clone();
  EXPECT_TRUE(at::equal(forward(true), first));
  EXPECT_TRUE(at::equal(state_of(*model).at("encoder.conv_layers.0.norm.running_mean"), mean));
  EXPECT_EQ(state_of(*model).at("encoder.conv_layers.0.norm.num_batches_tracked").item<std::int64_t>(), 1);
  forward(false);
  EXPECT_EQ(state_of(*model).at("encoder.conv_layers.0.norm.num_batches_tracked").item<std::int64_t>(), 2);
}

/// Gradient checkpointing in its simplest form: keeps inputs, runs the segment again in backward.
class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* c, const at::Tensor& first, const at::Tensor& second,
                            const Segment* segment) {
    c->save_for_backward({first, second});
    c->saved_data["segment"] = reinterpret_cast<std::int64_t>(segment);
    return (*segment)({first, second});
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* c,
                                                 torch::autograd::variable_list gradients) {
    const auto& segment = *reinterpret_cast<const Segment*>(c->saved_data["segment"].toInt());
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& saved : c->get_saved_variables()) inputs.push_back(saved.detach().requires_grad_());
    at::Tensor out;
    {
      const at::AutoGradMode graph(true);
      RandomContext again = random_context();
      again.recomputing = true;
      const RandomContextGuard guard(again);
      out = segment(inputs);
    }
    out.backward(gradients[0]);
    return {inputs[0].grad(), inputs[1].grad(), {}};
  }
};

TEST(Informer, GradientCheckpointingGivesTheSameGradients) {
  const InformerSettings s = small();
  const Data d = data_for(s, 4);
  const auto gradients = [&](bool checkpoint, std::vector<std::string>* names) {
    const auto model = make_informer(s, 2);
    const RandomContextGuard guard(context_of(d.ids));
    std::vector<std::unique_ptr<Segment>> kept;
    SegmentRunner runner;
    if (checkpoint)
      runner = [&](const torch::nn::Module& part, const Segment& segment, const std::vector<at::Tensor>& inputs) {
        for (const auto& item : model->named_modules())
          if (item.value().get() == &part) names->push_back(item.key());
        kept.push_back(std::make_unique<Segment>(segment));
        return Recompute::apply(inputs[0], inputs.size() > 1 ? inputs[1] : at::zeros({1}), kept.back().get());
      };
    const SegmentRunnerGuard segments(runner);
    at::mse_loss(informer_forward(*model, d.input), d.target).backward();
    auto state = state_of(*model);
    std::map<std::string, at::Tensor> found;
    for (const auto& p : model->named_parameters()) found[p.key()] = p.value().grad();
    found["running_var"] = state.at("encoder.conv_layers.0.norm.running_var");
    return found;
  };
  std::vector<std::string> names;
  const auto plain = gradients(false, nullptr), recomputed = gradients(true, &names);
  EXPECT_EQ(names, (std::vector<std::string>{"encoder.attn_layers.0", "encoder.conv_layers.0", "encoder.attn_layers.1",
                                             "decoder.layers.0"}));
  for (const auto& [name, gradient] : plain) EXPECT_TRUE(at::equal(gradient, recomputed.at(name))) << name;
}

TEST(Informer, EvaluationIsRepeatableAndNeedsNoContext) {
  InformerSettings s = small();
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  EXPECT_NE(message_of([&] { informer_forward(*model, d.input); }).find("RandomContextGuard"), std::string::npos)
      << "training needs one";
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor once = informer_forward(*model, d.input);
  const RandomContextGuard guard(context_of(d.ids, 99));
  EXPECT_TRUE(at::equal(informer_forward(*model, d.input), once));
  s.eval_sampling_seed = 5;
  const auto other = make_informer(s, 2);
  other->eval();
  EXPECT_FALSE(at::equal(informer_forward(*other, d.input), once)) << "other sampled keys";
}

TEST(Informer, RunsUnderAutocastWithFloat32Gradients) {
  const InformerSettings s = small();
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  const RandomContextGuard guard(context_of(d.ids));
  const at::Tensor exact = informer_forward(*model, d.input).detach();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor low = informer_forward(*model, d.input);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(low.scalar_type(), at::kBFloat16);
  // bfloat16 keeps 8 bits; some picked queries may change as well.
  EXPECT_LE(relative_difference(low, exact, 1.0), 0.1);
  at::mse_loss(low.to(at::kFloat), d.target).backward();
  for (const auto& p : model->named_parameters()) {
    ASSERT_TRUE(p.value().grad().defined()) << p.key();
    EXPECT_EQ(p.value().grad().scalar_type(), at::kFloat) << p.key();
    EXPECT_TRUE(p.value().grad().isfinite().all().item<bool>()) << p.key();
  }
}

TEST(Informer, FullAttentionDropsItsWeightsByTheSamplesMask) {
  InformerSettings s = small();
  s.attn = "full";
  s.distil = false;
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  const RandomContextGuard guard(context_of(d.ids));
  const at::Tensor whole = informer_forward(*model, d.input);
  const RandomContextGuard half(context_of(d.ids.narrow(0, 2, 2)));
  EXPECT_LE(relative_difference(informer_forward(*model, part(d.input, 2, 2)), whole.narrow(0, 2, 2), 1.0), 1e-5);
}

TEST(Informer, SequencesDownToOneRowWork) {
  InformerSettings s = small();
  s.seq_len = 3;
  s.e_layers = 4;  // 3 -> 2 -> 1 -> 1
  s.label_len = 0;
  s.pred_len = 1;
  const auto model = make_informer(s, 2);
  const Data d = data_for(s, 4);
  const RandomContextGuard guard(context_of(d.ids));
  const at::Tensor out = informer_forward(*model, d.input);
  EXPECT_EQ(out.sizes(), (std::vector<std::int64_t>{4, 1, 3}));
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  out.sum().backward();
}

TEST(Informer, WrongInputsAreErrorsThatNameFieldAndShape) {
  const InformerSettings s = small();
  const auto model = make_informer(s, 2);
  model->eval();
  const Data d = data_for(s, 4);
  const auto message = [&](const std::function<void(InformerInput&)>& spoil) {
    InformerInput input = d.input;
    spoil(input);
    return message_of([&] { informer_forward(*model, input); });
  };
  EXPECT_EQ(message([](InformerInput& in) {
              in.x_enc = at::zeros({4, 31, 3});
            }),
            "informer: x_enc has shape [4, 31, 3], but must be (4, 32, 3): samples, seq_len, enc_in");
  EXPECT_EQ(message([](InformerInput& in) {
              in.x_enc = at::zeros({4, 32, 7});
            }),
            "informer: x_enc has shape [4, 32, 7], but must be (4, 32, 3): samples, seq_len, enc_in");
  EXPECT_EQ(
      message([](InformerInput& in) {
        in.x_mark_enc = at::zeros({4, 32, 5});
      }),
      "informer: x_mark_enc has shape [4, 32, 5], but must be (4, 32, 4): samples, seq_len, time features of embed and "
      "freq");
  EXPECT_EQ(message([](InformerInput& in) {
              in.x_dec = at::zeros({3, 24, 3});
            }),
            "informer: x_dec has shape [3, 24, 3], but must be (4, 24, 3): samples, label_len + pred_len, dec_in");
  EXPECT_EQ(message([](InformerInput& in) { in.x_mark_dec = at::Tensor(); }), "informer: x_mark_dec is missing");
  EXPECT_NE(message([](InformerInput& in) {
              in.x_enc = at::zeros({32, 3});
            }).find("x_enc must be (samples, seq_len, enc_in)"),
            std::string::npos);
  torch::nn::Module other("other");
  EXPECT_NE(message_of([&] { informer_forward(other, d.input); }).find("this module (other) is no Informer"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              informer_decoder_input(at::zeros({2, 5, 3}), s);
            }).find("must be (samples, 24, columns)"),
            std::string::npos);
}

TEST(Informer, CalendarFieldsOutsideTheTablesAreNamed) {
  InformerSettings s = small();
  s.embed = "fixed";
  const auto model = make_informer(s, 2);
  model->eval();
  const Data d = data_for(s, 2);
  InformerInput input = d.input;
  input.x_mark_enc = at::ones({2, 32, 4});
  input.x_mark_dec = at::ones({2, 24, 4});
  EXPECT_TRUE(informer_forward(*model, input).isfinite().all().item<bool>());
  input.x_mark_dec[1][3][3] = 24.0;
  EXPECT_NE(
      message_of([&] { informer_forward(*model, input); })
          .find("x_mark_dec column 3 (hour) holds values from 1 to 24, but embed = fixed or learned has a table of 24 "
                "rows, 0 to 23"),
      std::string::npos);
}

TEST(InformerSettings, BadOnesAreErrorsThatNameTheField) {
  const auto message = [](const std::function<void(InformerSettings&)>& spoil) {
    InformerSettings s;
    spoil(s);
    return message_of([&] { make_informer(s, 1); });
  };
  EXPECT_EQ(message([](InformerSettings& s) { s.pred_len = 0; }), "informer: pred_len = 0, but must be at least 1");
  EXPECT_NE(message([](InformerSettings& s) { s.d_model = 511; }).find("d_model = 511, but must be even"),
            std::string::npos);
  EXPECT_NE(message([](InformerSettings& s) { s.n_heads = 513; }).find("n_heads = 513"), std::string::npos);
  EXPECT_NE(message([](InformerSettings& s) { s.dropout = 1.0; }).find("dropout = 1"), std::string::npos);
  EXPECT_NE(message([](InformerSettings& s) { s.seq_len = 5001; }).find("seq_len = 5001"), std::string::npos);
  EXPECT_NE(
      message([](InformerSettings& s) { s.attn = "sparse"; }).find("attn = \"sparse\", but must be one of prob, full"),
      std::string::npos);
  EXPECT_NE(message([](InformerSettings& s) { s.s_layers = {3, 0}; }).find("s_layers[1] = 0"), std::string::npos);
}

TEST(InformerSettings, HaveTheReferencesNamesAndDefaults) {
  InformerSettings s;
  config::Fields fields;
  fields.section("model", [&] { describe(fields, s); });
  fields.apply_override("model.seq_len=48");
  fields.apply_override("model.factor=3");
  fields.apply_override("model.s_layers=3,2,1");
  EXPECT_EQ(s.seq_len, 48);
  EXPECT_EQ(s.factor, 3);
  EXPECT_EQ(s.s_layers, (std::vector<int>{3, 2, 1}));
  EXPECT_THROW(fields.apply_override("model.attn=sparse"), Error);
  EXPECT_THROW(fields.apply_override("model.d_modell=4"), Error);
}

TEST(Linear, LargeProductsAndTheirGradientsEqualATens) {
  // 2^24 multiply-adds and more go another way. Sums of 300 float32 products in another order.
  constexpr double kTolerance = 2e-6;
  const at::Tensor x_data = at::randn({4, 100, 300}), w_data = at::randn({200, 300}), b_data = at::randn({200});
  const at::Tensor seed = at::randn({4, 100, 200});
  const auto results = [&](const auto& apply, bool strided) {
    at::Tensor x = x_data.clone().requires_grad_(), w = w_data.clone().requires_grad_(),
               b = b_data.clone().requires_grad_();
    const at::Tensor input = strided ? x.transpose(0, 1).contiguous().transpose(0, 1) : x;
    const at::Tensor out = apply(input, w, b);
    out.backward(seed);
    return std::vector<at::Tensor>{out.detach(), x.grad(), w.grad(), b.grad()};
  };
  const auto expected = results([](const auto& x, const auto& w, const auto& b) { return at::linear(x, w, b); }, false);
  for (const bool strided : {false, true}) {
    const auto ours = results([](const auto& x, const auto& w, const auto& b) { return linear(x, w, b); }, strided);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LE(relative_difference(ours[i], expected[i], 1.0), kTolerance) << i << (strided ? " strided" : "");
  }
}

}  // namespace
}  // namespace cohort::models
