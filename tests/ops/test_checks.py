"""Unknown arguments are errors that name the nearest known one."""

import keras
import pytest

from audio_tf import attention, layers
from audio_tf.ops import checks
from audio_tf.ops.layer import Layer

OURS = sorted(
    {
        item
        for item in [*vars(layers).values(), *attention.ATTENTIONS.values()]
        if isinstance(item, type) and issubclass(item, keras.layers.Layer)
    },
    key=lambda item: item.__name__,
)


@pytest.mark.parametrize("layer", OURS)
def test_every_layer_refuses_an_unknown_argument(layer):
    needed = {"num_heads": 2, "key_dim": 2, "frame_size": 3, "filters": 2}
    known = checks.parameters_of(layer)
    given = {name: value for name, value in needed.items() if name in known}
    assert layer(**given, name="mine", trainable=False).name == "mine"
    with pytest.raises(TypeError, match="'trainble'; did you mean 'trainable'"):
        layer(**given, trainble=False)


def test_the_nearest_argument_of_a_class_is_named():
    with pytest.raises(
        TypeError, match="XBOXAttention .*'candidates'; did .*'num_candidates'"
    ):
        attention.create("xbox", num_heads=2, key_dim=3, candidates=3)
    with pytest.raises(TypeError, match="'num_head'; did you mean 'num_heads'"):
        attention.create("xbox", num_head=2, key_dim=3)
    with pytest.raises(TypeError, match="'xbox' needs `num_heads`"):
        attention.create("xbox", key_dim=3)


def test_parameters_end_where_nothing_is_handed_up():
    class Closed(Layer):
        def __init__(self, width):
            super().__init__()

    class Open(Closed):
        def __init__(self, height=3, **kwargs):
            super().__init__(**kwargs)

    assert checks.parameters_of(Closed) == ["width"]
    assert checks.parameters_of(Open) == ["height", "width"]
    assert checks.defaults_of(Open) == {"height": 3}


def test_what_is_not_near_is_not_proposed():
    with pytest.raises(TypeError, match="argument 'zzz'. Received"):
        checks.reject_unknown("it", ["zzz"], ["width"])
    checks.reject_unknown("it", ["width"], ["width"])
