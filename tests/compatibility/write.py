"""Writes the files that every later version has to load.

    python tests/compatibility/write.py FOLDER
    python tests/compatibility/write.py --keys

The first command made the files of this folder, each with the version that
brought what it holds, and leaves alone what is there: a file that is written
anew proves nothing. The second one adds new classes and new config keys to
`frozen.json`, with the names of attentions, backbones and sizes, and refuses
to take one away.
"""

import argparse
import json
import pathlib

import keras
import numpy as np
from keras import ops

from audio_tf import attention, layers, models, optimizers

HERE = pathlib.Path(__file__).resolve().parent
KEYS = HERE / "frozen.json"
RATE_HZ = 1_100
BINS = {"num_mel_bins": 7, "fft_length": 64}
SIZES = {
    "num_layers": 2,
    "num_heads": 2,
    "key_dim": 3,
    "hidden_dim": 8,
    "intermediate_dims": (5,),
}
SAMPLES = 11 * 13


def inputs():
    """Two clips of noise, one of them padded, as waveform and as features."""
    rng = np.random.default_rng(17)
    return {
        "waveform": rng.uniform(-0.5, 0.5, (2, SAMPLES)).astype("float32"),
        "lengths": np.array([SAMPLES, SAMPLES - 30], "int32"),
        "features": rng.standard_normal((2, 13, 14), dtype="float32"),
    }


def outputs(model, given):
    """Outputs of a model in inference.

    Args:
        model: one of those that `load` returns.
        given: dict of all `inputs`, from which the model is given its own.

    Returns:
        Dict of arrays by name.
    """
    if isinstance(model.input, dict) and "waveform" in model.input:
        taken = {name: given[name] for name in ("waveform", "lengths")}
    else:
        taken = given["features"]
    found = model(taken, training=False)
    if not isinstance(found, dict):
        found = {"output": found}
    return {name: ops.convert_to_numpy(found[name]) for name in found}


def every_layer():
    """A model of every public layer, and of every attention by name."""
    waveform = keras.Input((None,), name="waveform")
    lengths = keras.Input((), dtype="int32", name="lengths")
    made = {}

    # Augmentations hand on what they are given but in training.
    x, count = waveform, lengths
    for layer in (
        layers.RandomGain((-3.0, 3.0), seed=1),
        layers.PolarityInversion(seed=2),
        layers.TimeShift(0.01, RATE_HZ, seed=3),
        layers.AdditiveNoise(seed=4),
        layers.SpeedPerturbation(seed=5),
        layers.RandomCrop(0.1, RATE_HZ, seed=6),
    ):
        x, count = layer(x, count)
    targets = ops.expand_dims(ops.cast(count, "float32"), 1)
    for layer in (
        layers.Mixup(seed=7),
        layers.BetweenClassMixing(RATE_HZ, 0.02, seed=8),
    ):
        x, targets, count = layer(x, targets, count)

    energies = layers.Spectrogram(RATE_HZ, 0.05, 0.0125, 64)(x, count)
    made["LogCompression"] = layers.LogCompression()(energies)
    made["PCEN"] = layers.PCEN()(energies)
    made["DecibelSpectrogram"] = layers.DecibelSpectrogram(
        sample_rate_hz=RATE_HZ, fft_length=64
    )(x, count)
    made["MFCC"] = layers.MFCC(
        num_coefficients=5, sample_rate_hz=RATE_HZ, **BINS
    )(x, count)
    made["SpeechFeatures"] = layers.SpeechFeatures(
        "paper", RATE_HZ, {**BINS, "stack_size": 2}
    )(x, count)
    bands = layers.LogMel(sample_rate_hz=RATE_HZ, **BINS)(x, count)
    for layer in (
        layers.VocalTractPerturbation(seed=9),
        layers.TimeMasking(seed=10),
        layers.BandMasking(seed=11),
        layers.Deltas(width=5),
        layers.UtteranceNorm(),
        layers.FrameStacking(2),
    ):
        bands = layer(bands)
    made["bands"], masked = layers.FrameMasking(seed=12)(bands)
    made["FrameMasking"] = ops.cast(masked, "float32")

    frontend = layers.WaveformFrontend(16, 8, 0.01, RATE_HZ)
    mask = layers.FrameMask(frontend.window_size)(x, count)
    frames = layers.SinusoidalPositions()(frontend(x, count))
    made["TransformerBlock"] = layers.TransformerBlock(
        2, 3, (5,), "sparse_fixed", {"stride": 3}
    )(frames, mask=mask)
    made["FeedForward"] = layers.FeedForward((5,))(frames)
    made["MultiScaleAverage"] = layers.MultiScaleAverage()(frames, mask=mask)
    made["TemporalAveragePooling"] = layers.TemporalAveragePooling(2)(
        frames, mask=mask
    )
    for layer in (
        layers.MaskedMean(),
        layers.StatisticsPooling(),
        layers.AttentionPooling(num_heads=2, attention_dim=3),
    ):
        made[type(layer).__name__] = layer(frames, mask=mask)
    for name in attention.ATTENTIONS:
        layer = attention.create(name, num_heads=2, key_dim=3, max_length=13)
        made[name] = layer(frames, mask=mask)
    return keras.Model({"waveform": waveform, "lengths": lengths}, made)


def albert(**kwargs):
    return models.AudioAlbertBackbone(
        **{**SIZES, "feature_dim": 14, "initializer_range": 0.3, **kwargs}
    )


def speech_classifier():
    """A classifier over an Audio ALBERT that mixes its hidden states."""
    features = layers.SpeechFeatures(
        "s3prl", RATE_HZ, {**BINS, "stack_size": 2}
    )
    encoder = models.SpeechEncoder(
        albert(return_hidden_states=True), features, weighted_sum=True
    )
    model = models.AudioClassifier(encoder, labels=["one", "two"], chunk_s=0.1)
    model.compile("sgd", "binary_crossentropy")
    return model


def pretrained():
    """A masked acoustic model after one update, with its optimizer."""
    model = models.MaskedAcousticModel(
        albert(
            attention="crafted_synthesizer", num_heads=8, made_for_frames=13
        ),
        compile=False,
    )
    schedule = optimizers.WarmupLinearDecay(1e-3, warmup_steps=2, total_steps=5)
    model.compile(optimizers.Lamb(schedule, global_clipnorm=10.0))
    rng = np.random.default_rng(3)
    model.train_on_batch(rng.standard_normal((2, 13, 14), dtype="float32"))
    return model


def classifier():
    """The classifier of the preset."""
    backbone = models.AudioTransformerBackbone(
        **SIZES,
        frontend_filters=16,
        window_s=0.01,
        sample_rate_hz=RATE_HZ,
        attention="random_synthesizer",
        made_for_frames=23,
        pool_every=1,
        multiscale="causal",
    )
    return models.AudioClassifier(
        backbone, labels=["dog", "rain", "steps"], chunk_s=0.1, silence_db=-60.0
    )


def move_weights(model, rng):
    """Makes weights that begin as zeros or ones tell from each other."""
    for weight in model.weights:
        if "float" in keras.backend.standardize_dtype(weight.dtype):
            old = ops.convert_to_numpy(weight)
            noise = rng.standard_normal((2, *old.shape))
            weight.assign(old * (1.0 + 0.1 * noise[0]) + 0.01 * noise[1])


def configs(serialized):
    """Yields registered name and config of all objects of ours in JSON."""
    if isinstance(serialized, dict):
        name = serialized.get("registered_name") or ""
        if name.startswith("audio_tf>"):
            yield name.removeprefix("audio_tf>"), serialized["config"]
        serialized = list(serialized.values())
    if isinstance(serialized, (list, tuple)):
        for each in serialized:
            yield from configs(each)


def keys_of(config):
    """The keys of a config, those of plain dicts in it after a dot."""
    keys = set(config)
    for name, value in config.items():
        if isinstance(value, dict) and "class_name" not in value:
            keys |= {f"{name}.{key}" for key in value}
    return keys


def config_keys(items):
    """Dict by name of our classes of the config keys of what was loaded.

    Args:
        items: models and other objects that Keras can serialise.
    """
    found = {}
    for item in items:
        serialized = keras.saving.serialize_keras_object(item)
        for name, config in configs(serialized):
            found.setdefault(name, set()).update(keys_of(config))
    return {name: sorted(found[name]) for name in sorted(found)}


def registered():
    """Pair of our classes and functions that Keras knows, dicts by name."""
    known = {
        name.removeprefix("audio_tf>"): found
        for name, found in keras.saving.get_custom_objects().items()
        if name.startswith("audio_tf>")
    }
    classes = {name for name in known if isinstance(known[name], type)}
    return (
        {name: known[name] for name in sorted(classes)},
        {name: known[name] for name in sorted(set(known) - classes)},
    )


def parts_alone():
    """Objects of ours whose config is in none of the files."""
    from audio_tf import batch_metrics
    from audio_tf.analysis import probes
    from audio_tf.attention.gaussian_adaptive import LogNormal
    from audio_tf.attention.relative import RelativePositions
    from audio_tf.layers.frontend import QuadratureFilters, TriangularBands
    from audio_tf.layers.recurrent import Orthogonal
    from audio_tf.models.gaussian_adaptive_transformer import LayerFrames
    from audio_tf.ops.layer import Dropout

    return [
        LayerFrames(albert(return_hidden_states=True), [0, 2]),
        Dropout(0.5),
        LogNormal(),
        Orthogonal(),
        QuadratureFilters(),
        TriangularBands(),
        batch_metrics.BatchAveragePrecision(3),
        attention.create("gated_relative", num_heads=2, key_dim=3),
        RelativePositions(2),
        layers.ChannelNorm(),
        layers.ConvolutionalFrontend(),
        layers.ConvolutionalPositions(),
        layers.LearnedFrameMasking(),
        layers.BandPooling(),
        layers.BidirectionalGRU(),
        layers.Convolution(3),
        layers.ConvolutionBlock(3),
        layers.DenseTransition(3),
        layers.DenselyConnectedBlock(),
        layers.FrameNorm(),
        layers.LastStatesPooling(),
        layers.MaxMeanPooling(),
        layers.MelFrontend(),
        models.GaussianAdaptiveDecoder(2, 4, num_classes=3, filters=2),
        layers.MelPatches(),
        layers.NormalizedReLU(),
        layers.ResidualBlock(3),
        layers.TemporalMaxPooling(),
        models.AudioClassifierPreprocessor(models.WaveformConverter(RATE_HZ)),
        models.WeightedSum(),
        probes.RealAccuracy(),
        probes.create("phoneme_linear", 3, 2),
    ]


def mel_classifier():
    """A classifier of mel bands and pre-norm blocks, with augmentation."""
    backbone = models.AudioTransformerBackbone(
        **SIZES,
        frontend_filters=6,
        window_s=0.03,
        hop_s=0.01,
        stack_size=2,
        sample_rate_hz=RATE_HZ,
        filterbank="log_mel",
        attention=["sparse_fixed", "full"],
        attention_kwargs=[{"stride": 3}, {}],
        causal=False,
        norm_first=True,
        augmentation=[
            layers.SpeedPerturbation(seed=13),
            layers.VocalTractPerturbation(seed=14),
        ],
    )
    return models.AudioClassifier(
        backbone, labels=["a", "b"], chunk_s=None, pooling="statistics"
    )


def vgg_like_classifier():
    """A classifier of a VGG-like backbone, with the head of its paper."""
    backbone = models.VGGLikeBackbone(
        filters=(3, 5), depths=(2, 1), num_mel_bins=7, sample_rate_hz=RATE_HZ
    )
    return models.AudioClassifier(backbone, labels=["a", "b"], chunk_s=0.1)


def mel_resnet_classifier():
    """A classifier of a residual network."""
    backbone = models.MelResNetBackbone(
        filters=(3, 5), num_mel_bins=7, sample_rate_hz=RATE_HZ
    )
    return models.AudioClassifier(backbone, labels=["a", "b"], chunk_s=0.1)


def rivals():
    """A model of classifiers of the further convolutional backbones."""
    sizes = {"num_mel_bins": 7, "sample_rate_hz": RATE_HZ}
    backbones = {
        "crnn": models.CRNNBackbone(
            filters=3, pools=((2, 3), (2, 2)), units=4, **sizes
        ),
        "resnet18": models.ResNet18Backbone(filters=(3, 5), depth=1, **sizes),
        "densenet121": models.DenseNet121Backbone(
            depths=(2, 1), growth=2, stem_filters=4, **sizes
        ),
    }
    inputs = backbones["crnn"].input
    scores = {
        name: models.AudioClassifier(backbone, 2, chunk_s=0.1)(inputs)
        for name, backbone in backbones.items()
    }
    return keras.Model(inputs, scores)


def wavlm():
    """A WavLM that drops and masks in training."""
    return models.WavLMBackbone(
        **{**SIZES, "hidden_dim": 6},
        conv_channels=(5, 4),
        conv_kernels=(7, 3),
        conv_strides=(4, 3),
        position_kernel=5,
        position_groups=2,
        sample_rate_hz=RATE_HZ,
        attention_kwargs={"num_buckets": 16, "max_distance": 9},
        mask_rate=0.1,
        layer_drop=0.1,
        activation_dropout=0.1,
        initializer_range=0.3,
        return_hidden_states=True,
    )


def gaussian():
    """A Gaussian adaptive transformer over a frozen encoder."""
    encoder = models.AudioTransformerBackbone(
        **SIZES, frontend_filters=6, window_s=0.01, sample_rate_hz=RATE_HZ
    )
    return models.GaussianAdaptiveTransformer(
        encoder, labels=["a", "b"], filters=3, chunk_s=None
    )


def scales():
    """An encoder that pools by maxima, with averages at scales of its own."""
    return models.AudioTransformerBackbone(
        **SIZES,
        frontend_filters=6,
        window_s=0.01,
        sample_rate_hz=RATE_HZ,
        attention="hybrid_local",
        pool_every=1,
        pool_kind="max",
        multiscale="causal",
        multiscale_windows=[3, 2],
        multiscale_shares=[0.25, 0.5],
        multiscale_after=[0, 1],
    )


def write(folder):
    """Writes the models that a folder lacks, with inputs and outputs."""
    keras.utils.set_random_seed(23)
    rng = np.random.default_rng(29)
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "preset": classifier,
        "layers.keras": every_layer,
        "speech.keras": speech_classifier,
        "pretraining.keras": pretrained,
        "mel.keras": mel_classifier,
        "vgg_like.keras": vgg_like_classifier,
        "mel_resnet.keras": mel_resnet_classifier,
        "rivals.keras": rivals,
        "wavlm.keras": wavlm,
        "gaussian.keras": gaussian,
        "scales.keras": scales,
    }
    stored = {}
    if (folder / "arrays.npz").is_file():
        with np.load(folder / "arrays.npz") as file:
            stored = dict(file)
    for name, make in makers.items():
        if (folder / name).exists():
            print(f"{folder / name} is there, and stays as it is")
            continue
        model = make()
        move_weights(model, rng)
        if name == "preset":
            model.save_to_preset(str(folder / name))
        else:
            model.save(folder / name)
        for key, value in outputs(model, inputs()).items():
            stored[f"{name}/{key}"] = value
    np.savez_compressed(folder / "arrays.npz", **{**stored, **inputs()})


def add_keys():
    """Freezes classes, keys and names that are new."""
    found = {
        "configs": config_keys([*load().values(), *parts_alone()]),
        "names": {
            "attentions": sorted(attention.ATTENTIONS),
            "backbones": sorted(models.BACKBONES),
            "functions": list(registered()[1]),
            "sizes": sorted(models.list_sizes()),
        },
    }
    frozen = json.loads(KEYS.read_text()) if KEYS.is_file() else {}
    for table, owners in frozen.items():
        for owner, names in owners.items():
            gone = set(names) - set(found[table].get(owner, ()))
            if gone:
                raise SystemExit(f"{owner} lacks {sorted(gone)}")
    KEYS.write_text(json.dumps(found, indent=1) + "\n")


def load(folder=HERE):
    """The stored models by their names, loaded as a user loads them."""
    loaded = {
        path.name: keras.saving.load_model(path)
        for path in sorted(folder.glob("*.keras"))
    }
    preset = str(folder / "preset")
    return {"preset": models.AudioClassifier.from_preset(preset), **loaded}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--keys", action="store_true")
    arguments = parser.parse_args()
    if arguments.folder is not None:
        write(arguments.folder)
    if arguments.keys:
        add_keys()


if __name__ == "__main__":
    main()
