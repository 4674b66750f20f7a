"""`variant="package"` against the package that the paper's authors published.

pip install -e ".[test]" gaussian-adaptive-attention torch
pytest tests/peers/test_gaussian_package.py
"""

import numpy as np
import pytest

try:
    import torch
    from gaussian_adaptive_attention import MultiHeadGaussianAdaptiveAttention
except ImportError as error:
    pytest.skip(
        f"THE PUBLISHED GAUSSIAN ATTENTION IS NOT COMPARED: {error}",
        allow_module_level=True,
    )

from keras import ops

from audio_tf.attention import GaussianAdaptiveAttention

BATCH, TIME, DIM, HEADS = 3, 12, 20, 4


@pytest.mark.parametrize("num_gaussians", [1, 3])
@pytest.mark.parametrize("axis", [1, -1])
def test_outputs_and_maps_are_the_packages(axis, num_gaussians, rng):
    """It cuts heads along the axis whose statistics it takes."""
    theirs = MultiHeadGaussianAdaptiveAttention(axis, HEADS, num_gaussians)
    layer = GaussianAdaptiveAttention(
        HEADS,
        axis=axis,
        head_axis=axis,
        variant="package",
        num_gaussians=num_gaussians,
    )
    x = rng.standard_normal((BATCH, TIME, DIM)).astype("float32")
    layer.build(x.shape)
    offsets = rng.normal(0.0, 0.5, (HEADS, num_gaussians)).astype("float32")
    # Theirs start at normal noise, of either sign.
    widths = rng.uniform(0.4, 2.0, (HEADS, num_gaussians)).astype("float32")
    widths[:, 0] *= -1.0
    layer.mean_offset.assign(offsets)
    layer.gaussian_width.assign(widths)
    with torch.no_grad():
        for row, head in enumerate(theirs.attention_heads):
            head.mean_offsets.copy_(torch.from_numpy(offsets[row]))
            head.c.copy_(torch.from_numpy(widths[row]))
        expected = theirs(torch.from_numpy(x), return_attention_details=True)
    found = layer(x, return_attention_scores=True)
    for one, other in zip(found, expected, strict=True):
        one, other = ops.convert_to_numpy(one), other.numpy()
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
        assert np.abs(other).max() > 0.1
