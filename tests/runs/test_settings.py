"""Settings: checked as they are given, the same in every script."""

import contextlib
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import types

import keras
import pytest
from corpus_files import touch
from scripts import TRAINING

if keras.backend.backend() != "tensorflow":
    pytest.skip("settings read corpora by tf.data", allow_module_level=True)

import audio_tf
from audio_tf import runs
from audio_tf.runs import corpus_settings, reproduce, settings, train
from audio_tf.runs import flags as flags_of


@pytest.fixture(scope="module")
def classes():
    """The settings class of each script in training/, by the script's name.

    And of each table of `reproduce`, by both names.
    """
    found = {
        f"reproduce {table}": settings_class
        for table, (settings_class, *_) in reproduce.TABLES.items()
    }
    for script in sorted(TRAINING.glob("*.py")):
        if script.stem == "reproduce":
            continue
        module = importlib.import_module(f"audio_tf.runs.{script.stem}")
        (found[script.stem],) = (
            each
            for each in vars(module).values()
            if isinstance(each, type)
            and issubclass(each, settings.Settings)
            # Or in a file beside it, as train_settings is beside train.
            and each.__module__.startswith(module.__name__)
        )
    return found


def refusal(settings_class, arguments, capsys, **options):
    """The one line that flags end a script with."""
    with pytest.raises(SystemExit) as stopped:
        flags_of.parse(settings_class, "", list(map(str, arguments)), **options)
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_one_flag_means_one_thing_in_every_script(classes):
    """Type, help, choices, check, and what it applies to.

    A corpus is one of labelled clips in some scripts, of speech in others, and
    each table has rows of its own.
    """
    known, shared = {}, set()
    for script, settings_class in classes.items():
        for field in dataclasses.fields(settings_class):
            facts = {
                # Whether it may be left out is the script's affair.
                "type": settings.kind_of(field),
                **{
                    name: field.metadata[name]
                    for name in ("help", "choices", "check", "option", "only")
                },
            }
            if field.name in ("dataset", "rows"):
                facts["choices"] = None
            assert field.metadata["help"], (script, field.name)
            if field.name in known:
                shared.add(field.name)
            expected = known.setdefault(field.name, facts)
            assert facts == expected, (script, field.name)
    # The test would hold without any shared flag too.
    assert {"model", "batch_size", "epochs", "dropout", "out"} <= shared


def test_a_corpus_need_be_named_unless_it_is_made(classes):
    """Help says so where a layout makes its own, and nowhere else."""
    for script, settings_class in classes.items():
        fields = {
            field.name: field for field in dataclasses.fields(settings_class)
        }
        layouts = settings_class.layouts if "dataset" in fields else {}
        made = [name for name in layouts if layouts[name].makes_its_own]
        text = flags_of.help_of(fields["data_dir"], settings_class)
        default = text.partition("(default: ")[2]
        told = [name for name in corpus_settings.CORPORA if name in default]
        assert told == made, (script, text)


def test_a_cache_that_cannot_be_made_names_its_flag(
    tmp_path, capsys, monkeypatch
):
    """As of a service without a home, whose cache nobody has named."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("AUDIO_TF_CACHE", raising=False)
    with pytest.raises(SystemExit):
        train.main(["--out", str(tmp_path / "run"), "--dataset", "synthetic"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "--cache-dir must be a folder that can be written to." in line
    assert str(tmp_path / "file" / "audio_tf") in line
    # One that is there may be of a kind that is only read.
    (tmp_path / "cache").mkdir()
    given = train.TrainSettings(cache_dir=str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = given.prepare_arguments()["cache_dir"]
    assert found == str(tmp_path / "cache")


# By script: flags, and what the line says beside the first flag's name.
MISTAKES = {
    "train": [
        (["--batch-size", -1], "must be positive"),
        (["--out", ""], "can be written to. Received: an empty name"),
        (["--out", "x/../y", "--data-dir", "y"], "than that of the corpus"),
        (["--epochs", 0], "must be positive"),
        (["--batch-size", 10**21], "at most 4294967295 = 2^32 - 1. Received:"),
        (["--epochs", "ten"], "invalid int value"),
        (["--monitor", "val_map"], "did you mean 'val_mAP'"),
        (["--dropout", 2], "must be in [0, 1)"),
        (["--dropout", "nan"], "must be a finite number"),
        (["--learning-rate", 0], "must be positive"),
        (["--chunk-s", -1], "must be at least 0"),
        (["--chunk-hop-s", -1], "must be at least 0"),
        (["--silence-db", 3], "must be at most 0"),
        (["--seed", -1], "must be in [0, 2^32)"),
        (["--seed", 2**32], "must be in [0, 2^32)"),
        (["--loss", "hubr"], "did you mean 'huber'"),
        (["--precision", "mixed_bfloat"], "did you mean 'mixed_bfloat16'"),
        (["--attention", "xobx"], "did you mean 'xbox'"),
        (["--filterbank", "mle"], "did you mean 'mel'"),
        (["--dataset", "folder"], "did you mean 'folders'"),
        (["--decoder", "sound"], "must be one of ['soundfile'"),
        (["--made-for-frames", 0], "must be positive"),
        (
            ["--test-speakers", "03", "--dataset", "esc10"],
            "applies to --dataset emodb or ravdess or crema_d or fsdd alone",
        ),
        (
            ["--val-speakers", "a"],
            "applies to --dataset emodb or ravdess or crema_d or fsdd alone",
        ),
        (["--classes", "digits"], "applies to --dataset fsdd alone"),
        (
            ["--corpus-seed", 1, "--dataset", "fsdd"],
            "applies to --dataset synthetic or folders or csv alone",
        ),
        (["--classes", "digit", "--dataset", "fsdd"], "did you mean 'digits'"),
        (["--train-folds", 9, "--dataset", "esc10"], "a fold from 1 to 5"),
        (["--train-folds", "--dataset", "esc10"], "must name a fold"),
        (
            ["--val-folds", 1, "--dataset", "esc10"],
            "A fold must be in one of --train-folds",
        ),
        (
            ["--test-folds", "--dataset", "esc10"],
            "official splits of esc10 are: one of [1, 2, 3, 4, 5] is the test",
        ),
        (
            ["--val-folds", "--dataset", "iemocap"],
            "--other-splits allows others, and stands in the result. "
            "Received: [4] are in no split",
        ),
        (
            ["--test-speakers", "jo", "--dataset", "fsdd"],
            "--other-splits allows others, and stands in the result. "
            "Received: test_speakers is ['jo']",
        ),
        (
            ["--train-folds", 1, 2, 3, "--dataset", "folders"],
            "applies to --dataset esc10 or esc50 or iemocap alone",
        ),
        (
            # One that is also among the folds of training by default.
            ["--val-folds", 2, "--dataset", "fsdd"],
            "applies to --dataset esc10 or esc50 or iemocap alone",
        ),
        (["--vocabulary", "x", "--dataset", "esc10"], "--dataset csv alone"),
        (
            ["--warmup-share", 0.1, "--recipe", "paper"],
            "applies to --schedule cosine alone",
        ),
        (["--clip-norm", 0], "must be positive"),
        (
            ["--label-smoothing", 0.1, "--loss", "huber"],
            "applies to --loss binary_crossentropy or",
        ),
        (["--recipe", "storng"], "did you mean 'strong'"),
        (["--teachers", ""], "must be a name that is not empty. Received: ''"),
        (
            ["--teachers", "a", "b", "a"],
            "each value once. Received: 'a' 2 time",
        ),
        (["--noise", "a", "a"], "value once. Received: 'a' 2 times in ['a',"),
        (["--unlabelled", "a", "a"], "must have each value once"),
        (
            ["--val-speakers", "03", "08", "03", "--dataset", "emodb"],
            "each value once. Received: '03' 2 times",
        ),
        (["--loss", "ctc"], "--loss must be one of"),
        (["--loss", "sparse_categorical_crossentropy"], "categorical_cross"),
        (["--augmentation", "voices"], "did you mean 'voice'"),
        (["--model-kwargs", "{1}"], "must be JSON"),
        (["--model-kwargs", "[1]"], "must be a JSON object"),
        (
            ["--dropout", 0.2, "--model-kwargs", '{"dropout": 0.1}'],
            "and --model-kwargs must not say the same",
        ),
        (["--out", "/dev/null/x"], "a folder that can be written to"),
        (["--epoch", 3], "did you mean '--epochs'"),
        (["--batch", 3], "did you mean '--batch-size'"),
    ],
    "evaluate": [
        (["--split", "tset"], "did you mean 'test'"),
        (["--report", "none/of/this.json"], "a folder that is there"),
        (["--report", "."], "a file in a folder that is there"),
        (["--report", ""], "to. Received: an empty name"),
        (["--pictures", "/dev/null/x"], "a folder that can be written to"),
        (["--pictures", ".", "--data-dir", "."], "than that of the corpus"),
        (["--resume"], "there is no flag"),
        # Nothing is drawn by it.
        (["--seed", 1], "there is no flag --seed"),
    ],
    "pretrain": [
        (["--save-every", 7], "must divide --steps"),
        (["--accumulate", 3], "must divide --batch-size"),
        (["--warmup", 1.5], "must be in [0, 1)"),
        (
            ["--warmup", 0.99, "--steps", 10, "--save-every", 5],
            "a step in which the rate falls. Received: 0.99 of --steps 10",
        ),
        (["--cache-dir", ""], "must be a name that is not empty"),
        (["--data-dir", " "], "must be a name that is not empty"),
        (["--model", ""], "must be a name that is not empty"),
        (["--clip-norm", 0], "must be positive"),
        (["--masking", "papr"], "did you mean 'paper'"),
        (["--optimizer", "lamp"], "did you mean 'lamb'"),
        (["--features", "mel"], "must be one of ['paper', 's3prl']"),
        (["--max-s", 0], "must be positive"),
        (["--train-subsets", "a", "--dataset", "fsdd"], "or tfds_librispeech"),
        (
            ["--train-subsets", "dev-clean", "mine"],
            "Received: dev-clean is of dev, not of train (--train-subsets",
        ),
        (["--train-subsets", "a", "a"], "must have each value once"),
        (["--max-length", 5], "there is no flag --max-length"),
        # There is no test, and no phone is looked at.
        (["--test-list", "x"], "there is no flag --test-list"),
        (["--test-subsets", "test-clean"], "there is no flag --test-subsets"),
        (["--alignment", "x"], "there is no flag --alignment"),
    ],
    "probe": [
        (["--tasks", "speakr"], "did you mean 'speaker'"),
        (["--tasks"], "must name a probe"),
        (["--layer", 1], "needs --model"),
        (["--layer", "last"], "must be a number or `features`"),
        (["--val-share", 1], "must be in [0, 1)"),
        (["--hidden-dim", 0], "must be positive"),
        (["--alignment", "x", "--dataset", "fsdd"], "--dataset librispeech"),
    ],
    "baseline": [
        (["--trees", 10_000_000], "must be from 1 to 100000"),
        (["--coefficients", 2**32], "must be at most 4294967295"),
        (["--seed", 1], "there is no flag --seed; did you mean '--seeds'"),
    ],
    "compare": [
        (["--attentions", "full", "full"], "must have each value once"),
    ],
    "reproduce ssl": [
        (["--rows", "fulll"], "did you mean 'full'"),
        (["--data-dir", "x"], "--pretrain-config is needed"),
        (["--repeats", -1], "must be at least 0"),
        (["--seeds", -1], "must be in [0, 2^32)"),
        (["--seeds", 2, 0, 2], "must have each value once. Received: 2 2 tim"),
        (["--rows", "full", "full"], "--rows must have each value once"),
    ],
}


def test_settings_import_neither_keras_nor_tensorflow():
    """So that a flag that is wrong is told before seconds of imports."""
    code = (
        "import sys, types\n"
        # What the packages import is another matter.
        "for name, path in (\n"
        f"    ('audio_tf', {audio_tf.__path__!r}),\n"
        f"    ('audio_tf.runs', {runs.__path__!r}),\n"
        "):\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        "    sys.modules[name].__path__ = path\n"
        "from audio_tf.runs import corpus_settings, flags, model_settings\n"
        "corpus_settings.DataSettings()\n"
        "print({'keras', 'tensorflow'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.stdout == "set()\n", done.stderr


def test_mistakes_are_one_line_that_names_the_flag(
    classes, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for script, mistakes in MISTAKES.items():
        for flags, message in mistakes:
            line = refusal(
                classes[script], flags, capsys, resumable=script == "train"
            )
            assert message in line, (script, flags, line)
            if "needed" not in message:
                assert str(flags[0]) in line, (script, flags, line)
    assert not list(tmp_path.iterdir())


def test_a_config_is_checked_as_flags_are(classes, capsys, tmp_path):
    path = tmp_path / "config.py"
    for content, message in (
        ("{'epoch': 3}", "unknown setting 'epoch'; did you mean 'epochs'"),
        ("{'epochs': 0}", "--epochs must be positive"),
        ("{'epochs': 2.5}", "--epochs must be a whole number. Received: 2.5"),
        ("{'epochs': True}", "--epochs must be a whole number"),
        ("{'seed': None}", "--seed must be a whole number"),
        ("{'jitter': 1}", "--jitter must be True or False"),
        ("{'learning_rate': 'low'}", "--learning-rate must be a finite number"),
        ("{'train_folds': 1}", "--train-folds must be a list of whole numbers"),
        ("{'model_kwargs': 3}", "--model-kwargs must be a dict"),
        ("{'data_dir': 3}", "--data-dir must be"),
        ("{'out': 3}", "--out must be"),
        ("{'monitor': 'val_map'}", "did you mean 'val_mAP'"),
        (
            "{'schedule': 'constant', 'warmup_share': 0.5}",
            "applies to --schedule cosine alone",
        ),
    ):
        path.write_text(f"def get_config():\n    return {content}\n")
        for resumable in (False, True):
            line = refusal(
                *(classes["train"], ["--config", path], capsys),
                resumable=resumable,
            )
            assert message in line, content
    line = refusal(classes["train"], ["--config", "no.json"], capsys)
    assert "--config must be a Python file, *.py. Received: 'no.json'" in line
    with pytest.raises(ValueError, match="^--train-config must be a Python"):
        flags_of.read_config("no", classes["train"], "train_config")
    line = refusal(classes["train"], ["--config", tmp_path / "no.py"], capsys)
    assert "no.py" in line
    # Of different sizes: bytecode of one is used for the next of its second.
    for content, message in (
        ("epochs = 3", "must have a function get_config(). Received: None"),
        ("get_config = {'epochs': 3}", "must have a function get_config()"),
        ("def get_config():\n    return", "must return a dict"),
        ("get_config = lambda: [('epochs', 3)]", "must return a dict"),
        ("get_config = lambda: {1: 3, 'epoch': 3}", "unknown setting 1"),
    ):
        path.write_text(f"{content}\n")
        line = refusal(classes["train"], ["--config", path], capsys)
        assert message in line and str(path) in line, content
    for content, line_number, message in (
        ("import os\n\nimport nosuch", 3, "ModuleNotFoundError: No module n"),
        ("\ndef get_config():\n    return x", 3, "NameError: name 'x' is not"),
        ("\ndef get_config(:", 2, "SyntaxError: "),
        ("import json\n\n\njson.loads('{')", 4, "JSONDecodeError: Expecting"),
    ):
        path.write_text(f"{content}\n")
        line = refusal(classes["train"], ["--config", path], capsys)
        assert f"{path}, line {line_number}: {message}" in line
    # A flag is stronger, and what is of the right kind is taken.
    path.write_text(
        "import pathlib\n"
        "def get_config():\n"
        "    return {'epochs': 3, 'learning_rate': 1, 'dropout': None,\n"
        "        'data_dir': pathlib.Path('x'), 'dataset': 'esc10',\n"
        "        'train_folds': (1, 2, 3)}\n"
    )
    found = flags_of.parse(
        classes["train"], "", ["--config", str(path), "--epochs", "5"]
    )
    assert found.epochs == 5 and found.learning_rate == 1.0
    assert found.data_dir == "x" and found.train_folds == [1, 2, 3]
    assert found.given == {
        *("epochs", "learning_rate", "data_dir", "dataset", "train_folds"),
    }


def test_only_what_is_given_reaches_the_model(classes):
    train = classes["train"]
    assert train().model_options() == {}
    recipes = {"pooling": "mean", "activation": "sigmoid"}
    assert train(recipe="paper").head_options(True) == recipes
    # Keras divides scores by their sum in both of them.
    for loss in ("categorical_crossentropy", "categorical_focal_crossentropy"):
        assert train(loss=loss).head_options(True)["activation"] == "softmax"
    for loss in ("binary_focal_crossentropy", "huber"):
        assert train(loss=loss).head_options(True)["activation"] == "sigmoid"
    # The scale of the paper's front end, which others do not have.
    assert train(recipe="paper").model_options() == {"frontend_gain": 1.0}
    both = {"frontend_gain": 1.0, "num_layers": 2}
    found = train(recipe="paper", model_kwargs={"num_layers": 2})
    assert found.model_options() == both
    for other in (
        {"model": "audio_transformer_mel_small"},
        {"filterbank": "log_mel"},
        {"model_kwargs": {"filterbank": "log_mel"}},
    ):
        options = train(recipe="paper", **other).model_options()
        assert "frontend_gain" not in options
    # A recipe's warm-up goes together with its schedule.
    assert train(schedule="constant").warmup_share is None
    given = {
        "dropout": 0.0,
        "causal": False,
        "attention": "xbox",
        "attention_kwargs": {"num_candidates": 3},
        "made_for_frames": 7,
        "filterbank": "mel",
    }
    found = train(**given, model_kwargs={"num_layers": 2}, silence_db=0)
    assert found.model_options() == {**given, "num_layers": 2}
    # Nought stands for whole clips, for no overlap, and for all chunks.
    assert found.head_options(True)["silence_db"] is None
    assert train(chunk_s=0.0).head_options(True)["chunk_s"] is None
    assert train(chunk_hop_s=0).head_options(True)["chunk_hop_s"] is None
    assert train(chunk_hop_s=0.5).head_options(True)["chunk_hop_s"] == 0.5
    assert train(chunk_s=2).head_options(True)["chunk_s"] == 2.0
    assert "silence_db" not in train().head_options(True)


def test_what_has_no_effect_undoes_what_a_config_says(classes):
    """Beside a schedule, a loss or chunks that have no use for it."""
    train, whole = classes["train"], types.SimpleNamespace(chunk_s=None)
    given = {"schedule": "constant", "loss": "huber"}
    found = train(**given, warmup_share=0, label_smoothing=0.0, jitter=False)
    found.check_chunks(whole)
    assert found == train(**given)
    with pytest.raises(ValueError, match="--jitter applies to chunks"):
        train(jitter=True).check_chunks(whole)
    for name in ("warmup_share", "label_smoothing"):
        assert getattr(train(**{name: 0}), name) == 0.0
        with pytest.raises(ValueError, match=f"{name}=0.1"):
            train(**given, **{name: 0.1})


def test_a_flag_is_named_for_what_a_model_does_not_take(classes):
    found = classes["train"](
        filterbank="mel",
        attention="xbox",
        attention_kwargs={"num_candidate": 3},
        model_kwargs={"num_layer": 2},
    )
    for message, flag in (
        ("X takes no argument 'filterbank'; did you mean 'f'.", "--filterbank"),
        ("X takes no argument 'num_candidate'.", "--attention-kwargs"),
        ("X takes no argument 'num_layer'. Received: 1", "--model-kwargs"),
        ("`attention` must be local.", "--attention"),
    ):
        with pytest.raises(ValueError) as raised, found.naming_flags():
            raise TypeError(f"{message} Received: 'filterbank', 'attention'")
        assert str(raised.value).startswith(f"{flag}: ")
    with pytest.raises(KeyError), found.naming_flags():
        raise KeyError("'filterbank'")


def test_speakers_and_classes_reach_the_reader(classes, tmp_path):
    for who in ("ann", "jo", "zoe"):
        touch(tmp_path / "recordings" / f"3_{who}_7.wav")
    asked = {"dataset": "fsdd", "data_dir": tmp_path}
    splits = classes["train"](
        **asked,
        val_speakers=["jo"],
        test_speakers=["ann"],
        other_splits=True,
    ).load()
    assert [file.stem for each in splits.values() for file in each.files] == [
        *("3_zoe_7", "3_jo_7", "3_ann_7")
    ]
    scored = classes["evaluate"](**asked, split="val", classes="speakers")
    assert scored.load()["val"].vocabulary == ["ann", "jo", "zoe"]
    with pytest.raises(ValueError, match=r"--split .* of \['val'\].*'test'"):
        classes["evaluate"](**asked).load()


def test_settings_survive_json_with_what_was_given(classes):
    train = classes["train"]
    before = train(
        epochs=3, dataset="esc10", train_folds=[4, 3], val_folds=[2, 1]
    )
    content = json.loads(json.dumps(before.to_json()))
    # The default of a later version does not change a run that is resumed.
    content["settings"]["batch_size"] = 77
    after = train.from_json(content, data_dir="moved")
    assert after.batch_size == 77 and after.data_dir == "moved"
    assert after.given == before.given | {"data_dir"}
    # A setting had another name once.
    earlier = json.loads(json.dumps(train(chunk_hop_s=0.5).to_json()))
    earlier["settings"]["hop_s"] = earlier["settings"].pop("chunk_hop_s")
    earlier["given"] = ["hop_s"]
    assert train.from_json(earlier).given == {"chunk_hop_s"}
    assert train.from_json(earlier).chunk_hop_s == 0.5
    del content["settings"]["epochs"]
    content["settings"]["epoch"] = 3
    with pytest.raises(ValueError, match="without.*'epochs'.*with.*'epoch'"):
        train.from_json(content)


def test_settings_that_are_gone_are_passed_over(classes):
    """A run that was begun with them goes on: they meant nothing."""
    pretrain = classes["pretrain"]
    now = pretrain(data_dir="x", steps=1000)
    before = json.loads(json.dumps(now.to_json()))
    before["settings"] |= {"test_subsets": ["test-clean"], "alignment": None}
    before["given"].append("test_subsets")
    assert pretrain.from_json(before) == now
    assert pretrain.from_json(before).given == now.given


def test_a_run_goes_on_as_it_began(classes, capsys, tmp_path):
    """It is not taken for a new one, and keeps its settings."""
    train, out = classes["train"], tmp_path / "run"
    out.mkdir()
    begun = train(epochs=3, out=str(out)).to_json()
    (out / "config.json").write_text(json.dumps(begun))
    known = {"resumable": True, "free": ("data_dir",)}
    line = refusal(train, ["--out", out], capsys, **known)
    assert "holds a run. Add --resume" in line
    again = ["--out", str(out), "--resume"]
    line = refusal(train, [*again, "--epochs", 4], capsys, **known)
    assert "goes on with the settings" in line
    assert "epochs=4 in place of 3" in line
    line = refusal(train, ["--out", tmp_path, "--resume"], capsys, **known)
    assert "config.json is missing" in line
    flags = [*again, "--epochs", "3", "--data-dir", "moved"]
    found, resumed = flags_of.parse(train, "", flags, **known)
    assert resumed and found.epochs == 3 and found.data_dir == "moved"


def test_one_process_alone_is_at_work_on_a_run(tmp_path, capsys):
    """A row that outlives its table and the one that follows do not mix."""
    out, begun = tmp_path / "new" / "run", []

    @dataclasses.dataclass
    class Folder(settings.Settings):
        """A run that has its folder alone."""

        out: str = settings.setting("", "folder of the run")

    def start(run):
        flags_of.run_by_flags(
            run,
            Folder,
            "",
            ["--out", str(out)],
            "work",
            free=(),
            kept=lambda _: "some epochs" if begun else "",
        )

    def meanwhile(_, folder):
        begun.append(folder)
        with pytest.raises(SystemExit):
            start(meanwhile)

    start(meanwhile)
    error = capsys.readouterr().err
    assert begun == [out]
    assert f"work: {out}: another process is at work on this run" in error
    assert "some epochs" not in error
    assert not out.parent.exists()
    # Of a run that has lost its settings, nothing is gone on with.
    with pytest.raises(SystemExit):
        start(None)
    error = capsys.readouterr().err
    assert "--out must be a folder without what another run" in error
    assert f"{out}, of a run whose config.json is gone" in error
    assert not out.parent.exists()
    begun.clear()
    start(lambda _, folder: (folder / "history.csv").touch())
    assert [each.name for each in out.iterdir()] == ["history.csv"]


def test_a_run_whose_config_was_broken_by_hand_is_named(tmp_path):
    for content, message in (
        ('{"settings": {},', "must be JSON. Received: Expecting"),
        ("[]", "must have `settings` and `given`"),
        ('{"settings": {}}', "must have `settings` and `given`"),
    ):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(ValueError, match=f"config.json {message}"):
            flags_of.saved_run(tmp_path)


def test_a_report_that_cannot_be_written_is_told_at_once(tmp_path, monkeypatch):
    """Not once hours of clips are decoded and scored."""
    report = corpus_settings.ReportSettings
    os.mkfifo(tmp_path / "pipe")
    asked = []

    def access(path, mode):
        asked.append((os.fspath(path), mode))
        return writable

    for writable in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", access)
            for name, written in (("r.json", "."), ("pipe", "pipe")):
                given = tmp_path / name
                context = contextlib.nullcontext()
                if not writable:
                    wanted = f"--report must be .*written to.*{given}"
                    context = pytest.raises(ValueError, match=wanted)
                with context:
                    report(report=str(given))
                assert asked.pop() == (str(tmp_path / written), os.W_OK)


def test_training_on_jax_refuses_an_export_at_once(classes, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="--export needs KERAS_BACKEND=tensor"):
        classes["train"](export=True)
    assert not classes["train"](export=False).export


def test_of_several_hosts_the_first_holds_the_run(classes, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(runs.distribution, "check_environment", lambda: None)
    hosts = {"distribution": "data_parallel", "num_processes": 2}
    hosts["job_addresses"] = "localhost:1234"
    for index in range(2):
        asked = classes["train"](**hosts, process_id=index)
        assert asked.writes == (index == 0)
    assert classes["train"]().writes and classes["probe"]().writes
