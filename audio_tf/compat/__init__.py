"""The private API of Keras and KerasHub that the library uses, in one place.

It was tried with Keras 3.15 and KerasHub 0.32.
"""

from audio_tf.compat.layers import (
    has_flash_attention,
    layers_within,
    replace_weight,
    settle_dtypes,
)
from audio_tf.compat.loops import (
    compiled_metrics,
    flatten_metrics,
    in_tf_graph,
    is_tf_dataset,
    quiet_end_of_data,
    refuse_ragged,
    update_metrics,
    with_clips,
)
from audio_tf.compat.models import (
    OnAnyBackend,
    QuietQuantization,
    TracedAnew,
)
from audio_tf.compat.optimizers import (
    OwnWeightDecay,
    StateInFloat32,
    UnbiasedAverage,
    unshare,
)
from audio_tf.compat.presets import (
    AUDIO_CONVERTER_CONFIG_FILE,
    CONFIG_FILE,
    METADATA_FILE,
    PREPROCESSOR_CONFIG_FILE,
    SIZE_LOADERS,
    TASK_CONFIG_FILE,
    TASK_WEIGHTS_FILE,
    get_preset_loader,
    has_file,
    is_builtin,
    is_converted,
    load_backbone_weights,
    load_task_weights,
    read_json,
    register_converter,
    register_released,
    register_sizes,
    serialized_for_preset,
    weight_files,
)

__all__ = [
    "AUDIO_CONVERTER_CONFIG_FILE",
    "CONFIG_FILE",
    "METADATA_FILE",
    "PREPROCESSOR_CONFIG_FILE",
    "SIZE_LOADERS",
    "TASK_CONFIG_FILE",
    "TASK_WEIGHTS_FILE",
    "OnAnyBackend",
    "OwnWeightDecay",
    "QuietQuantization",
    "TracedAnew",
    "StateInFloat32",
    "UnbiasedAverage",
    "compiled_metrics",
    "flatten_metrics",
    "get_preset_loader",
    "has_file",
    "has_flash_attention",
    "in_tf_graph",
    "is_builtin",
    "is_converted",
    "is_tf_dataset",
    "layers_within",
    "load_backbone_weights",
    "load_task_weights",
    "quiet_end_of_data",
    "read_json",
    "refuse_ragged",
    "register_converter",
    "register_released",
    "register_sizes",
    "replace_weight",
    "serialized_for_preset",
    "settle_dtypes",
    "unshare",
    "update_metrics",
    "weight_files",
    "with_clips",
]
