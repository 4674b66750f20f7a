"""Texts and images through encoders of KerasHub: all layers, resume, guards."""

import codecs
import csv
import json
import pickle

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("KerasHub tokenizes by TensorFlow", allow_module_level=True)

import keras_hub
import scripts
import tiny

from audio_tf.analysis import hub_embeddings
from audio_tf.corpora import images, texts
from audio_tf.corpora.examples import with_validation
from audio_tf.runs import embed, fold_arrays

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
LAYERS, DIM = 2, 6
TOKENS = 11
SIDE, PATCH = 12, 4


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The folder of a BERT whose words are letters."""
    folder = tmp_path_factory.mktemp("bert") / "preset"
    backbone = keras_hub.models.BertBackbone(
        len(WORDS), LAYERS, 2, DIM, 7, max_sequence_length=40
    )
    rng = np.random.default_rng(0)
    for weight in backbone.weights:
        weight.assign(0.5 * rng.standard_normal(weight.shape))
    tokenizer = keras_hub.models.BertTokenizer(WORDS)
    backbone.save_to_preset(str(folder))
    keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=TOKENS
    ).save_to_preset(str(folder))
    return folder


def vit_converter():
    """KerasHub's own, which rounds what it has made of whole pixels."""
    return keras_hub.layers.ViTImageConverter(
        image_size=(SIDE, SIDE), scale=1 / 100.0
    )


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    """The folder of a ViT of nine patches and a class token."""
    folder = tmp_path_factory.mktemp("vit") / "preset"
    backbone = keras_hub.models.ViTBackbone(
        (SIDE, SIDE, 3), PATCH, LAYERS, 2, DIM, 7
    )
    # Or they would be those of whatever test was before.
    rng = np.random.default_rng(1)
    for weight in backbone.weights:
        weight.assign(0.5 * rng.standard_normal(weight.shape))
    backbone.save_to_preset(str(folder))
    vit_converter().save_to_preset(str(folder))
    return folder


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(keras.Model, "run_eagerly", tiny.ALWAYS_EAGER)


NEWS = {
    "train": [(1 + n % 4, "a b"[: 1 + n % 3], "c d e f"[:n]) for n in range(8)],
    "test": [(2, "h", "g h a b c d e f"), (4, "a", "")],
}


@pytest.fixture
def news(tmp_path):
    folder = tmp_path / "news"
    folder.mkdir()
    for split, rows in NEWS.items():
        with open(folder / f"{split}.csv", "w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return folder


def bert_layers(folder, text):
    """Means of the blocks of one text that is not padded, block by block."""
    backbone = keras_hub.models.Backbone.from_preset(str(folder))
    words = text.split()[: TOKENS - 2]
    tokens = [[WORDS.index(word) for word in ["[CLS]", *words, "[SEP]"]]]
    x = backbone.token_embedding(np.array(tokens))
    x = x + backbone.position_embedding(x)
    x = x + backbone.segment_embedding(np.zeros_like(tokens))
    x = backbone.embeddings_layer_norm(x)
    found = []
    for layer in backbone.transformer_layers:
        x = layer(x)
        found.append(np.asarray(x)[0].mean(axis=0))
    return np.stack(found)


def arguments(encoder, dataset, data, out, *more):
    return [
        *("--encoder", str(encoder), "--dataset", dataset),
        *("--data-dir", str(data), "--out", str(out), "--batch-size", "3"),
        *("--val-share", "0.5", *map(str, more)),
    ]


def test_an_encoder_computes_in_the_precision_that_is_asked_for(
    bert, news, tmp_path, monkeypatch
):
    encoder = hub_embeddings.HubEncoder(str(bert), "text", TOKENS, "bfloat16")
    assert encoder.backbone.dtype_policy.name == "bfloat16"
    assert encoder.embed(["a b"]).dtype == "float32"
    asked = []

    def noted(*given):
        asked.append(given)
        raise ValueError("no more is wanted")

    monkeypatch.setattr(embed, "HubEncoder", noted)
    more = ("--compute-dtype", "float16", "--max-tokens", "7")
    with pytest.raises(SystemExit):
        embed.main(arguments(bert, "ag_news", news, tmp_path / "run", *more))
    assert asked == [(str(bert), "text", 7, "float16")]


@pytest.mark.long
def test_texts_go_on_where_a_run_was_ended(bert, news, tmp_path):
    out = tmp_path / "out"
    given = arguments(bert, "ag_news", news, out, "--max-tokens", TOKENS)
    # Its second batch, the first being of the batch size.
    name = "audio_tf.analysis.hub_embeddings:HubEncoder.embed"
    scripts.end_at(name, 2, lambda script, *more: embed.main(more), "", *given)
    part = out / embed.PART
    assert part.stat().st_size == 3 * 4 * LAYERS * DIM
    rows = np.fromfile(part, "float32")
    with open(part, "ab") as file:
        file.write(b"half a row")
    embed.main(["--out", str(out), "--resume"])
    assert not part.exists()
    found = fold_arrays.read_arrays(out / embed.WHOLE)
    np.testing.assert_array_equal(found.x[:3].ravel(), rows)
    listed = [*NEWS["train"], *NEWS["test"]]
    assert found.x.shape == (len(listed), LAYERS, DIM)
    for x, (number, title, rest), target in zip(
        found.x, listed, found.targets, strict=True
    ):
        expected = bert_layers(bert, f"{title} {rest}")
        np.testing.assert_allclose(x, expected, atol=1e-5)
        label = found.vocabulary[target.argmax()]
        assert label == ["World", "Sports", "Business", "Sci/Tech"][number - 1]
    names = found.splits.tolist()
    assert names[8:] == ["test"] * 2
    assert sorted(names[:8]) == ["train"] * 4 + ["val"] * 4
    (news / "test.csv").write_text("1,a,b\n")
    with pytest.raises(SystemExit):
        embed.main(["--out", str(out), "--resume"])


@pytest.mark.parametrize("left", [embed.PART, embed.WHOLE])
def test_a_new_run_goes_on_with_no_rows_of_another(
    left, news, tmp_path, capsys
):
    """Whose settings are gone: they would pass for those of this encoder."""
    out = tmp_path / "out"
    out.mkdir()
    (out / left).write_bytes(b"rows of another encoder")
    with pytest.raises(SystemExit):
        embed.main(arguments("an_encoder", "ag_news", news, out))
    assert "of a run whose config.json is gone" in capsys.readouterr().err
    assert [each.name for each in out.iterdir()] == [left]


def cifar(folder, rng, batches, meta, labels, names):
    """Batches as Python 2 has pickled them, opcode by opcode."""

    def short(text):
        return b"U" + bytes([len(text)]) + text

    folder.mkdir()
    pixels = {}
    for number, name in enumerate(batches):
        x = rng.integers(0, 256, (2, 3072), dtype="uint8")
        pixels[name] = x
        array = (
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
            b"K\x00\x85" + short(b"b") + b"\x87R(K\x01K\x02M\x00\x0c\x86"
            b"cnumpy\ndtype\n" + short(b"u1") + b"K\x00K\x01\x87R(K\x03"
            b"" + short(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
            b"K\x00tb\x89T" + x.size.to_bytes(4, "little") + x.tobytes() + b"tb"
        )
        classes = bytes([number % 2]), bytes([1])
        (folder / name).write_bytes(
            b"\x80\x02}("
            + short(b"data")
            + array
            + short(labels.encode())
            + b"](K"
            + classes[0]
            + b"K"
            + classes[1]
            + b"eu."
        )
    (folder / meta).write_bytes(
        pickle.dumps({names: ["cat", "dog"]}, protocol=2)
    )
    return pixels


@pytest.mark.costly
def test_cifar_batches_become_layers(vit, rng, tmp_path, monkeypatch):
    # Of twelve; large corpora have more rows than are copied at once.
    monkeypatch.setattr(embed, "ROWS", 5)
    files = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]
    folder = tmp_path / "cifar"
    pixels = cifar(folder, rng, files, "batches.meta", "labels", "label_names")
    out = tmp_path / "out"
    embed.main(arguments(vit, "cifar10", folder, out, "--dtype", "float16"))
    found = fold_arrays.read_arrays(out / embed.WHOLE)
    assert np.load(out / embed.WHOLE)["embeddings"].dtype == "float16"
    assert found.vocabulary == ["cat", "dog"]
    assert found.targets.argmax(axis=1).tolist() == [0, 1, 1, 1] * 3
    assert found.splits[10:].tolist() == ["test"] * 2
    backbone = keras_hub.models.Backbone.from_preset(str(vit))
    encoder = backbone.get_layer("vit_encoder")
    planes = pixels["data_batch_2"][1].reshape(3, 32, 32)
    image = np.stack(list(planes), axis=-1)[None]
    x = backbone.get_layer("vit_patching_and_embedding")(vit_converter()(image))
    first = encoder.encoder_layers[0](x)
    last = encoder.layer_norm(encoder.encoder_layers[1](first))
    expected = [np.asarray(each)[0].mean(axis=0) for each in (first, last)]
    np.testing.assert_allclose(found.x[3], expected, atol=3e-3)
    assert json.loads((out / "config.json").read_text())["model"]["layers"] == 2


def test_a_hostile_batch_runs_nothing(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (tmp_path / "made").touch, ()

    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({b"data": Hostile()}, protocol=2))
    with pytest.raises(ValueError, match="must not name"):
        images.read_batch(path)
    path.write_bytes(pickle.dumps({b"data": codecs.encode}, protocol=2))
    images.read_batch(path)
    # An array of a terabyte is none until its bytes are there.
    path.write_bytes(
        b"\x80\x02}(U\x04datacnumpy\nndarray\nJ\xff\xff\xff\x7f\x85Ru."
    )
    assert isinstance(images.read_batch(path)["data"], images.Stored)
    assert not (tmp_path / "made").exists()


def test_images_behind_links_and_splits_of_other_names(tmp_path):
    for name in ("disk/cat/1.png", "pictures/dog/2.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "pictures/cat").symlink_to(tmp_path / "disk/cat")
    found = images.read_image_folders(tmp_path / "pictures")
    assert sorted(found.labels) == ["cat", "dog"]
    for name in ("Train/cat/1.png", "Test/dog/2.png"):
        (tmp_path / "others" / name).parent.mkdir(parents=True)
        (tmp_path / "others" / name).touch()
    with pytest.raises(ValueError, match="must be called train, val, test"):
        images.read_image_folders(tmp_path / "others")


@pytest.mark.costly
def test_bad_images_are_left_out_and_named(vit, rng, tmp_path, capsys):
    folder = tmp_path / "pictures"
    for split in ("train", "test"):
        for label in ("cat", "dog"):
            (folder / split / label).mkdir(parents=True)
            for n, size in enumerate(((9, 14), (20, 5))):
                keras.utils.save_img(
                    folder / split / label / f"{n}.png",
                    rng.integers(0, 256, (*size, 3)),
                    scale=False,
                )
    bad = folder / "test" / "dog" / "1.png"
    bad.write_bytes(b"no image")
    embed.main(arguments(vit, "image_folders", folder, tmp_path / "out"))
    found = fold_arrays.read_arrays(tmp_path / "out" / embed.WHOLE)
    assert len(found.x) == 7
    printed = capsys.readouterr().out
    assert "1 file left out" in printed and str(bad) in printed
    assert (
        sorted(found.splits.tolist())
        == ["test"] * 3 + ["train", "train"] + ["val"] * 2
    )


@pytest.mark.costly
def test_what_does_not_fit_is_refused(bert, vit, news, tmp_path):
    with pytest.raises(
        ValueError, match="images.*Classifier.embed.*BertBackbone"
    ):
        hub_embeddings.HubEncoder(str(bert), "image")
    with pytest.raises(ValueError, match="must take texts.*ViTBackbone"):
        hub_embeddings.HubEncoder(str(vit), "text", TOKENS)
    with pytest.raises(ValueError, match="at most 40.*Received: 41"):
        hub_embeddings.HubEncoder(str(bert), "text", 41)
    with pytest.raises(ValueError, match="Received: Sequential"):
        hub_embeddings.find_blocks(
            keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        )
    with pytest.raises(ValueError, match="--max-tokens applies to"):
        embed.EmbedSettings(
            encoder="e", data_dir="d", dataset="cifar10", max_tokens=9
        )
    with pytest.raises(ValueError, match="float16, of b"):
        embed.checked(np.full((1, 2, 3), 7e4), [1], ["a", "b"], "float16")
    (news / "train.csv").write_text('5,"a","b"\n')
    with pytest.raises(ValueError, match="row 1: must be a class"):
        texts.read_ag_news(news)
    table = tmp_path / "table.csv"
    table.write_text("text,label,split\na b,x,train\nc,y,vall\n")
    with pytest.raises(ValueError, match="did you mean 'val'"):
        texts.read_text_table(table)
    table.write_text("text,label,split\na b,x,train\n ,y,test\nc,y,train\n")
    found = texts.read_text_table(table)
    with pytest.raises(ValueError, match="empty text"):
        found.read(1)
    assert with_validation(found, 0.0, 0).splits == ["train", "val", "train"]
    with pytest.raises(ValueError, match="0.1 of 1 'x'"):
        with_validation(found, 0.1, 0)


def test_a_validation_that_is_there_is_not_drawn(tmp_path):
    table = tmp_path / "table.csv"
    rows = "".join(
        f"{number},{'xy'[number % 2]},train\n" for number in range(8)
    )
    table.write_text(f"text,label,split\n{rows}")
    asked = embed.EmbedSettings(
        encoder="e", dataset="text_csv", data_dir=str(table)
    )
    drawn = asked.replace(val_share=0.25)
    assert drawn.load().splits.count("val") == 2
    table.write_text(f"text,label,split\n{rows}a,x,val\nb,y,val\n")
    assert asked.load().splits.count("train") == 8
    for share in (0.25, 0.0):
        message = f"--val-share draws.*--val-share {share}, 2 examples in 'val'"
        with pytest.raises(ValueError, match=message):
            asked.replace(val_share=share).load()
