"""Functions that look into models: attention maps, their kinds, and figures.

`audio-tf inspect` calls all of them for a checkpoint. Figures need matplotlib
(extra `analysis`), which is imported when the first is drawn.
"""

from audio_tf.analysis.explanation_figures import draw_explanation
from audio_tf.analysis.figures import (
    draw_contributions,
    draw_heads,
    draw_importance,
    draw_kinds,
    draw_patterns,
    draw_projection,
)
from audio_tf.analysis.importance import (
    contributions,
    importance_factor,
    mean_map,
    select_layers,
)
from audio_tf.analysis.kinds import (
    KINDS,
    UNSORTED,
    MapKind,
    sort_head,
    sort_map,
)
from audio_tf.analysis.maps import (
    attention_maps,
    iterate_maps,
    transformer_blocks,
)
from audio_tf.analysis.projection import Projection, project

__all__ = [
    "KINDS",
    "UNSORTED",
    "MapKind",
    "Projection",
    "attention_maps",
    "contributions",
    "draw_contributions",
    "draw_explanation",
    "draw_heads",
    "draw_importance",
    "draw_kinds",
    "draw_patterns",
    "draw_projection",
    "importance_factor",
    "iterate_maps",
    "mean_map",
    "project",
    "select_layers",
    "sort_head",
    "sort_map",
    "transformer_blocks",
]
