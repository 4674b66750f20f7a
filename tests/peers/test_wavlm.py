"""WavLM, HuBERT and wav2vec 2.0 beside those of `transformers`.

Small models with random weights, saved as `transformers` saves them and
converted here: every hidden state, of clips alone and of a padded batch.
`make test-peers` runs it, in an environment of its own.
"""

import json

import keras
import numpy as np
import pytest

REASON = "NOTHING IS COMPARED WITH transformers: run `make test-peers`"
torch = pytest.importorskip("torch", reason=REASON)
transformers = pytest.importorskip("transformers", reason=REASON)

from audio_tf import models  # noqa: E402

# Bounds of rounding in float32, of states of about 1.
TOLERANCE = 1e-4
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "conv_dim": [16] * 7,
    "conv_kernel": [10, 3, 3, 3, 3, 2, 2],
    "num_conv_pos_embedding_groups": 4,
    "attention_dropout": 0.2,
}
BASE = {"feat_extract_norm": "group", "do_stable_layer_norm": False}
LARGE = {"feat_extract_norm": "layer", "do_stable_layer_norm": True}
CASES = {
    "wavlm_base": ("WavLM", BASE),
    "wavlm_large": ("WavLM", LARGE),
    "wavlm_ranges": (
        "WavLM",
        {**LARGE, "num_buckets": 32, "max_bucket_distance": 40},
    ),
    "hubert_large": ("Hubert", {**LARGE, "conv_bias": True}),
    "wav2vec2_base": ("Wav2Vec2", BASE),
}


def published(case, folder):
    """A model of `transformers` with random weights, saved as it saves them."""
    family, options = CASES[case]
    config = getattr(transformers, f"{family}Config")(**SMALL, **options)
    model = getattr(transformers, f"{family}Model")(config).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.add_(0.1 * noise)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps({"do_normalize": False, "sampling_rate": 16_000})
    )
    return model


def as_older_files(model, folder):
    """Replaces the safetensors by what PyTorch wrote when WavLM came out."""
    (folder / "model.safetensors").unlink()
    state = {}
    for name, tensor in model.state_dict().items():
        for new, old in (("original0", "weight_g"), ("original1", "weight_v")):
            name = name.replace(f"parametrizations.weight.{new}", old)
        state[f"wavlm.{name}"] = tensor
    state["lm_head.weight"] = torch.zeros(3, 32)
    torch.save(state, folder / "pytorch_model.bin")


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    """The name of a case, a model of `transformers`, and ours."""
    folder = tmp_path_factory.mktemp(request.param)
    theirs = published(request.param, folder)
    if request.param == "wavlm_base":
        as_older_files(theirs, folder)
    ours = models.AudioBackbone.from_preset(
        str(folder), return_hidden_states=True
    )
    return request.param, theirs, ours


def waveforms(samples=35_000, clips=3):
    rng = np.random.default_rng(11)
    return rng.uniform(-0.5, 0.5, (clips, samples)).astype("float32")


def states_of(model, x, mask=None):
    """All hidden states of `transformers`, the last one normalised.

    Its version 5 gives the last block's output as it is, its versions before
    as the encoder normalises it.
    """
    with torch.no_grad():
        found = model(
            torch.tensor(x),
            attention_mask=None if mask is None else torch.tensor(mask),
            output_hidden_states=True,
        )
    states = [state.numpy() for state in found.hidden_states]
    return [*states[:-1], found.last_hidden_state.numpy()]


def assert_states_equal(found, expected, real=None):
    found = keras.ops.convert_to_numpy(found)
    assert found.shape[1] == len(expected) == 4
    for index, state in enumerate(expected):
        ours = found[:, index]
        assert ours.shape == state.shape
        if real is not None:
            ours, state = ours[real], state[real]
        assert np.abs(state).max() > 0.5
        np.testing.assert_allclose(
            ours, state, atol=TOLERANCE, err_msg=f"hidden state {index}"
        )


def test_every_hidden_state(pair):
    _, theirs, ours = pair
    x = waveforms()
    assert_states_equal(ours(x)["hidden_states"], states_of(theirs, x))
    assert theirs.num_parameters() == ours.count_params()


def test_every_hidden_state_of_a_padded_batch(pair):
    """Of a group norm, `transformers` counts the padding: clips one by one."""
    name, theirs, ours = pair
    x, lengths = waveforms(), np.array([35_000, 20_001, 719], "int32")
    mask = np.arange(x.shape[1]) < lengths[:, None]
    x = x * mask
    found = ours({"waveform": x, "lengths": lengths})
    real = keras.ops.convert_to_numpy(found["frame_mask"])
    counts = theirs._get_feat_extract_output_lengths(torch.tensor(lengths))
    counts = counts.tolist()
    np.testing.assert_array_equal(real.sum(axis=1), counts)
    if CASES[name][1]["feat_extract_norm"] == "layer":
        expected = states_of(theirs, x, mask.astype("int64"))
        assert_states_equal(found["hidden_states"], expected, real)
    for clip, length in enumerate(lengths):
        expected = states_of(theirs, x[clip : clip + 1, :length])
        own = found["hidden_states"][clip : clip + 1, :, : counts[clip]]
        assert_states_equal(own, expected)


def test_normalised_waveforms(pair):
    """`do_normalize` is that of the published feature extractor."""
    _, theirs, ours = pair
    own = type(ours)(**{**ours.get_config(), "normalize_waveform": True})
    own.set_weights(ours.get_weights())
    extract = transformers.Wav2Vec2FeatureExtractor(
        do_normalize=True, return_attention_mask=True
    )
    x, lengths = 0.1 + waveforms(clips=2), [35_000, 20_001]
    clips = [each[:length] for each, length in zip(x, lengths, strict=True)]
    found = own({"waveform": x, "lengths": np.array(lengths, "int32")})
    for clip, length in enumerate(lengths):
        given = extract(clips[clip], sampling_rate=16_000)["input_values"]
        expected = states_of(theirs, np.stack(given))
        frames = expected[0].shape[1]
        assert_states_equal(
            found["hidden_states"][clip : clip + 1, :, :frames], expected
        )


def test_the_sizes_are_those_of_the_published_models():
    """Counted on both sides without a number of `transformers`' in memory."""
    large = {
        **LARGE,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    for options, expected in ((BASE, 94_381_936), (large, 315_453_120)):
        config = transformers.WavLMConfig(
            **options, conv_kernel=[10, 3, 3, 3, 3, 2, 2]
        )
        with torch.device("meta"):
            model = transformers.WavLMModel(config)
        assert model.num_parameters() == expected
