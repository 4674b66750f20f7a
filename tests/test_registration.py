"""Keras knows our classes, in whatever order the two are imported."""

import subprocess
import sys

import pytest

from audio_tf.registration import RegisterAfterImport

# A package that registers its classes with a host, and what stands around.
FILES = {
    "our_host/__init__": "REGISTERED = []\nimport our_host.deep",
    "our_host/deep": "",
    "our_frame": "HALF = True\nimport our_host\nCLASS = object",
    "ours/__init__": "",
    "ours/light": "",
    "ours/low": "import our_host\nNAME = 1",
    "ours/models": "import our_frame\nfrom ours.low import NAME\n"
    "our_frame.CLASS\nour_frame.our_host.REGISTERED.append('models')",
    "ours/other": "import our_host\nour_host.REGISTERED.append('other')",
    "ours/broken": "import our_host\nraise OSError('no')",
}


@pytest.fixture
def hook(tmp_path, monkeypatch):
    for name, content in FILES.items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    yield RegisterAfterImport(
        "our_host", ["our_frame"], "ours", ["ours.models", "ours.other"]
    )
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not isinstance(finder, RegisterAfterImport) or finder.host == "keras"
    ]
    for name in [*sys.modules]:
        if name.split(".")[0] in ("our_host", "our_frame", "ours"):
            del sys.modules[name]


@pytest.mark.parametrize(
    "imported",
    [
        ["our_host"],
        ["our_frame"],
        ["ours.light", "our_host"],
        ["ours.low"],
        ["ours.models"],
        ["ours.other", "our_host"],
        ["our_host.deep"],
    ],
)
def test_every_order_of_imports_registers_all(hook, imported):
    hook.install()
    __import__("ours")
    assert "our_host" not in sys.modules
    for name in imported:
        __import__(name)
    assert sorted(sys.modules["our_host"].REGISTERED) == ["models", "other"]
    assert hook not in sys.meta_path


def test_a_host_that_is_there_is_registered_with_at_once(hook):
    import our_host

    hook.install()
    assert our_host.REGISTERED == ["models", "other"]
    assert hook not in sys.meta_path


def test_nothing_is_imported_before_the_host(hook):
    hook.install()
    __import__("ours.light")
    assert "ours.models" not in sys.modules and "our_host" not in sys.modules


def test_a_module_that_fails_leaves_the_hook_at_work(hook):
    hook.install()
    with pytest.raises(OSError, match="no"):
        __import__("ours.broken")
    assert hook.depth == 0
    __import__("ours.low")
    assert sorted(sys.modules["our_host"].REGISTERED) == ["models", "other"]


@pytest.mark.costly
def test_keras_knows_our_classes():
    """In a process of its own, in which KerasHub is what imports Keras."""
    code = (
        "import sys, audio_tf\n"
        "assert 'keras' not in sys.modules\n"
        "import keras_hub, keras\n"
        "known = keras.saving.get_custom_objects()\n"
        "for name in ('AudioClassifier', 'FullAttention', 'Lamb'):\n"
        "    assert f'audio_tf>{name}' in known, name\n"
        "assert audio_tf.models.AudioClassifier in known.values()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_public_modules_are_named_and_others_refused():
    import audio_tf

    assert {"models", "layers", "data", "export"} <= set(dir(audio_tf))
    with pytest.raises(AttributeError, match="no attribute 'modles'"):
        audio_tf.modles
